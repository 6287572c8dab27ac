"""The capacity planner: what a load needs follows from the costs, and grows with the load."""

import json
from dataclasses import replace
from datetime import timedelta
from io import StringIO
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from typer.testing import CliRunner

from penstock.cli import capacity
from penstock.cli.capacity import amount
from penstock.cli.main import app
from penstock.errors import SettingsError
from penstock.ops.capacity import COSTS, Load, needed
from penstock.ops.capacity.costs import CORES
from penstock.ops.capacity.plan import textbook_partitions

WEEK = timedelta(days=7)
loads = st.builds(
    Load,
    rate=st.floats(1, 1e7),
    size=st.floats(1, 10_000),
    retention=st.timedeltas(timedelta(hours=1), timedelta(days=365)),
    work=st.sampled_from(sorted(COSTS)),
    keys=st.floats(0, 1e9),
    flows=st.integers(1, 20),
    replication=st.integers(1, 5),
    headroom=st.floats(1, 10),
)


@given(loads)
def test_cores_do_what_is_asked_with_the_headroom_and_a_core_less_does_not(load):
    need = needed(load)
    of_core = COSTS[load.work].figure / CORES / max(1.0, load.size / 200)
    assert need.partitions == ceil(load.rate * load.headroom / of_core)
    assert need.cores == need.partitions * load.flows
    assert need.textbook_partitions >= load.rate * load.size / 10_000_000


@given(loads, st.floats(1, 5))
def test_nothing_shrinks_when_the_load_grows(load, times):
    more, less = needed(replace(load, rate=load.rate * times)), needed(load)
    for name in ("partitions", "cores", "memory", "disk", "broker_in", "broker_out", "producers"):
        assert getattr(more, name) >= getattr(less, name)


def test_the_disk_is_what_comes_in_for_as_long_as_it_is_kept():
    need = needed(Load(rate=1_000, size=200, retention=timedelta(days=1), replication=2))
    assert need.disk == 1_000 * 200 * 86_400 * 2
    assert need.broker_in == 1_000 * 200 * 2
    assert need.broker_out == 1_000 * 200 * (1 + 1)


def test_an_hour_is_caught_up_in_an_hour_with_twice_the_cores():
    need = needed(Load(rate=44_719 * 10, size=200, retention=WEEK, headroom=2))
    assert need.catches_up == timedelta(hours=1)


def test_the_textbook_has_no_fewer_partitions_than_consumers():
    load = Load(rate=500_000, size=200, retention=WEEK)
    assert [textbook_partitions(load, consumers) for consumers in (1, 40)] == [10, 40]


@pytest.mark.parametrize("wrong", [{"rate": 0}, {"size": -1}, {"headroom": 0.5}, {"keys": -1}, {"flows": 0}])
def test_what_can_not_be_is_refused(wrong):
    given = {"rate": 1, "size": 1, "retention": WEEK}
    with pytest.raises(SettingsError, match="expected"):
        Load(**given | wrong)


@pytest.mark.parametrize("text", ["", "many", "10X", "-5"])
def test_an_amount_that_is_none_is_refused(text):
    with pytest.raises(SettingsError, match="expected an amount"):
        amount(text, "rate")


def test_the_command_prints_json_and_assumptions(monkeypatch):
    command = ["plan", "--rate", "500k", "--keys", "10M", "--stateful"]
    found = json.loads(CliRunner().invoke(app, [*command, "--json"]).stdout)
    assert found["cores"] == ceil(500_000 * 2 / (88_067 / 2))
    shown = StringIO()
    monkeypatch.setattr(capacity, "console", Console(file=shown, width=150))
    CliRunner().invoke(app, command)
    assert "bench flink" in shown.getvalue()
    assert "textbook" in shown.getvalue()
