"""How the fraud demo ends: with a verdict, or stopped on the way."""

import os
import signal

import pytest
from typer.testing import CliRunner

from penstock.apps.fraud import command
from penstock.apps.fraud.report import Report
from penstock.cli import output
from penstock.cli.main import app


@pytest.fixture
def ended(monkeypatch):
    """Run the command with something else in place of the application."""
    monkeypatch.setattr(output.console, "_file", None)

    def run(instead):
        monkeypatch.setattr(command, "_run", lambda plan, status: instead())
        return CliRunner().invoke(app, ["demo", "fraud", "--rate", "10", "--seconds", "1"])

    return run


def report(**changes):
    steady = {"between": [0.016] * 99 + [0.04], "waited": [1.2], "checkpoints": 4}
    return Report(rate=10, sent=1_000, alerts=100, repeated=7, **steady, **changes)


def test_a_verdict_comes_first_then_figures_and_what_to_try_next(ended):
    result = ended(report)
    assert result.exit_code == 0
    for part in ("100 alerts, each checked: 0 lost, 0 wrong", "nothing is left running", "Try next"):
        assert part in result.output


def test_latencies_are_shown_with_and_without_checkpoints(ended):
    lines = [" ".join(line.split()) for line in ended(report).output.splitlines()]
    assert "between checkpoints 100 16 ms 40 ms 40 ms" in lines
    assert "all, with 4 checkpoints 101 16 ms 40 ms 1,200 ms" in lines
    assert "within 500 ms 99.0% of the alerts before the kill, checkpoints included" in lines


def test_how_long_catching_up_took_is_shown_if_it_came_to_that(ended):
    assert "from kill -9 to alerts without delay" in ended(lambda: report(caught_up_seconds=31.0)).output
    assert "not before the traffic ended" in ended(report).output


def test_what_is_lost_or_wrong_is_named_and_fails(ended):
    result = ended(lambda: report(lost={"t1/many"}, wrong={"t2/fast"}))
    assert result.exit_code == 70
    assert "1 alerts lost, 1 wrong: t1/many, t2/fast" in result.output


def test_interrupted_it_says_that_nothing_is_left(ended):
    result = ended(lambda: os.kill(os.getpid(), signal.SIGINT))
    assert result.exit_code == 130
    assert "nothing is left running" in result.output
    assert "Try next" not in result.output
