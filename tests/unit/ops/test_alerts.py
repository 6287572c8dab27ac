"""The alert rules over series as they come: who is woken, and who is not."""

import json
import subprocess
from importlib.resources import files

import pytest
from tests.lacking import required

PLACE = '{group="billing", topic="orders", partition="0"}'
HOUR, WEEK = 3600, 7 * 86_400


@pytest.fixture
def promtool():
    return required("promtool")


def check(promtool, folder, alert, series, expected):
    """Let Prometheus judge series of a value a minute; `expected` says at which minutes the alert fires."""
    rules = files("penstock.ops").joinpath("prometheus/alerts.yml").read_text()
    (folder / "alerts.yml").write_text(rules)
    firing = f'count(ALERTS{{alertname="Penstock{alert}", alertstate="firing"}}) or vector(0)'
    questions = [
        {"expr": firing, "eval_time": f"{minute}m", "exp_samples": [{"labels": "{}", "value": int(fires)}]}
        for minute, fires in expected.items()
    ]
    test = {
        "interval": "1m",
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "promql_expr_test": questions,
    }
    cases = {"rule_files": ["alerts.yml"], "evaluation_interval": "1m", "tests": [test]}
    (folder / "test.yml").write_text(json.dumps(cases))
    run = subprocess.run([promtool, "test", "rules", "test.yml"], cwd=folder, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        pytest.param("0x20 2x40", {19: False, 22: True, 50: False}, id="the first ones of an empty queue"),
        pytest.param("_x20 3x40", {19: False, 22: True, 50: False}, id="the first ones of a new queue"),
        pytest.param("2x20 3x40", {19: False, 22: True, 50: False}, id="one more"),
        pytest.param("5x30 0x30", {29: False, 32: False, 50: False}, id="a redrive"),
        pytest.param("5x30 2x30", {29: False, 32: False, 50: False}, id="a redrive that leaves some"),
        pytest.param("5x30 0x3 2x30", {29: False, 33: False, 36: True}, id="new ones soon after a redrive"),
    ],
)
def test_dead_letters_wake_when_more_of_them_wait(promtool, tmp_path, values, expected):
    check(promtool, tmp_path, "DeadLetters", {'penstock_dead_letters{topic="orders"}': values}, expected)


@pytest.mark.parametrize(
    ("left", "lag", "fires"),
    [
        pytest.param(HOUR - 10, 10, False, id="a topic that keeps an hour, read at once"),
        pytest.param(HOUR - 2400, 2400, False, id="a topic that keeps an hour, with a third of it left"),
        pytest.param(HOUR - 3300, 3300, True, id="a topic that keeps an hour, nearly over"),
        pytest.param(6 * HOUR - 60, WEEK - 6 * HOUR + 60, True, id="a topic that keeps a week, nearly over"),
        pytest.param(8 * HOUR, WEEK - 8 * HOUR, False, id="a topic that keeps a week, with a shift left"),
        pytest.param(0, 5, True, id="events were lost"),
    ],
)
def test_retention_wakes_by_the_share_that_is_left(promtool, tmp_path, left, lag, fires):
    series = {
        f"penstock_retention_left_seconds{PLACE}": f"{left}x20",
        f"kafka_consumergroup_lag_seconds{PLACE}": f"{lag}x20",
        f"kafka_consumergroup_lag{PLACE}": "7x20",
    }
    check(promtool, tmp_path, "RetentionNear", series, {10: fires})
