"""`penstock why`: what it is asked, and which pipelines modules declare."""

from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace

import pytest
from tests.unit.ops.test_why_answer import ANSWER
from typer.testing import CliRunner

from penstock.cli.main import app
from penstock.cli.modules import declared_pipelines
from penstock.cli.why import _record
from penstock.errors import SettingsError
from penstock.ops.why.asking import names_of


def test_a_record_is_a_partition_and_an_offset():
    assert (_record("3/17"), _record(None)) == ((3, 17), None)
    with pytest.raises(SettingsError, match="expected partition/offset"):
        _record("17")


def test_pipelines_are_found_with_the_variables_that_they_are_in():
    found = declared_pipelines(("penstock.apps.shop.pipeline",))
    [(place, pipeline)] = found.items()
    assert place == ("penstock.apps.shop.pipeline", "shop")
    targets = {name: names_of(flow) for name, flow in pipeline.flows.items()}
    assert targets["table"] == ["order_view"]
    assert targets["view"] == ["shop.order-view"]
    assert targets["cache"] == ["order-line"]
    assert targets["index"] == ["shop/index"]


@pytest.mark.parametrize(("changes", "code"), [({}, 0), ({"proved": False, "but_for": ("amount",)}, 65)])
def test_only_a_proof_ends_well(changes, code, monkeypatch):
    answer = replace(ANSWER, **changes, instead={"amount": 2} if changes else {})
    monkeypatch.setattr("penstock.process.session", lambda *_, **__: SimpleNamespace(stop=lambda: None))
    monkeypatch.setattr("penstock.ops.why.why", lambda *_: answer)
    shown = CliRunner().invoke(app, ["why", "large", "-m", "penstock.apps.shop.pipeline"])
    assert shown.exit_code == code
    assert ("not proved" in shown.output, "amount, recomputed: 2" in shown.output) == (bool(code), bool(code))


def test_what_is_under_way_is_said_on_standard_error(monkeypatch):
    said = []
    monkeypatch.setattr("penstock.process.session", lambda *_, **__: SimpleNamespace(stop=lambda: None))
    monkeypatch.setattr("penstock.ops.why.why", lambda *_: ANSWER)
    monkeypatch.setattr("penstock.cli.why.underway", lambda what: said.append(what) or nullcontext())
    shown = CliRunner().invoke(app, ["why", "large", "-m", "penstock.apps.shop.pipeline"])
    assert shown.exit_code == 0
    assert said == ["starting Spark", "looking for the events behind a result of large"]


@pytest.mark.parametrize("command", ["why", "watermark", "plan"])
def test_the_commands_say_what_they_do(command):
    shown = CliRunner().invoke(app, [command, "--help"])
    assert shown.exit_code == 0
    assert "Example:" in shown.stdout
