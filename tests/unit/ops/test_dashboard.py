"""The dashboard and the alerts ask for metrics that there are, by labels that they have."""

import json
import re
from importlib.resources import files

import pytest
from tests.observed_system import system
from typer.testing import CliRunner

from penstock.cli.main import app
from penstock.ops.metrics import metrics

METRIC = re.compile(r"\b(?:kafka|penstock)_[a-z_]+\b")
BY = re.compile(r"\b(?:by|on) \(([^)]*)\)")
ALERTS = files("penstock.ops").joinpath("prometheus/alerts.yml").read_text()
DASHBOARD = files("penstock.ops").joinpath("grafana/dashboard.json").read_text()


def expressions():
    panels = json.loads(DASHBOARD)["panels"]
    shown = [each["expr"] for panel in panels for each in panel["targets"]]
    return [*shown, *re.findall(r"^ +expr: (.*)$", ALERTS, re.MULTILINE)]


def known():
    """The names of all series, and of their labels."""
    found = {}
    for metric in metrics(system()):
        for point in metric.points:
            found.setdefault(metric.name + point.suffix, set()).update(point.labels)
    return found


@pytest.mark.parametrize("expression", expressions())
def test_an_expression_names_what_is_there(expression):
    series = known()
    names = METRIC.findall(expression)
    assert names
    assert [name for name in names if name not in series] == []
    labels = set.union(*(series[name] for name in names))
    asked = {each.strip() for some in BY.findall(expression) for each in some.split(",")}
    asked |= set(re.findall(r"(\w+)(?:=~|!=|=)\"", expression))
    assert asked <= labels


def test_what_people_have_to_be_woken_for_is_there():
    named = re.findall(r"alert: Penstock(\w+)", ALERTS)
    assert {"FlowDown", "LagGrows", "RetentionNear", "DeadLetters", "WatermarkStuck"} <= set(named)


def test_panels_have_their_own_ids_and_places():
    panels = json.loads(DASHBOARD)["panels"]
    assert len({each["id"] for each in panels}) == len(panels)
    assert len({(each["gridPos"]["x"], each["gridPos"]["y"]) for each in panels}) == len(panels)


@pytest.mark.parametrize(("option", "text"), [("--dashboard", DASHBOARD), ("--alerts", ALERTS)])
def test_the_command_prints_them(option, text):
    assert CliRunner().invoke(app, ["metrics", option]).output == text
