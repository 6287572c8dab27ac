"""What Prometheus reads: parsed strictly, as its own parser does."""

import json
import re
from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest
from tests.observed_system import AT, flow, group, lag, sample, system

from penstock.errors import ConfigurationError
from penstock.identity import Identity
from penstock.ops.exposition import Metric, Point, exposition
from penstock.ops.metrics import metrics
from penstock.ops.model import System
from penstock.pipeline.batch_history import BatchHistory
from penstock.pipeline.flow_status import FlowStatus
from penstock.pipeline.status_publisher import StatusPublisher
from penstock.settings import Settings

LINE = re.compile(
    r"(?P<name>[a-zA-Z_:][a-zA-Z0-9_:]*)"
    r'(?:\{(?P<labels>(?:[a-zA-Z_]\w*="(?:[^"\\\n]|\\[\\n"])*",?)*)\})?'
    r" (?P<value>[+-]?(?:\d+(?:\.\d+)?(?:e[+-]?\d+)?|Inf)|NaN)"
)
LABEL = re.compile(r'([a-zA-Z_]\w*)="((?:[^"\\\n]|\\[\\n"])*)"')
UNESCAPED = {r"\\": "\\", r"\n": "\n", r"\"": '"'}


def parsed(text):
    """Return the points by name and labels; every family is declared once, before its points."""
    found, kind, family, seen = {}, None, None, set()
    assert text.endswith("\n")
    for line in text.splitlines():
        if line.startswith("# HELP "):
            family, kind = line.split(" ")[2], None
            assert family not in seen
            seen.add(family)
        elif line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert name == family
        else:
            point = LINE.fullmatch(line)
            assert point, line
            suffixes = ("_bucket", "_sum", "_count") if kind == "histogram" else ("",)
            assert point["name"] in [family + each for each in suffixes]
            labels = LABEL.findall(point["labels"] or "")
            key = (point["name"], *sorted((name, unescaped(value)) for name, value in labels))
            assert key not in found, f"{key} is there twice"
            found[key] = float(point["value"])
    return found


def unescaped(text):
    return re.sub(r"\\.", lambda match: UNESCAPED[match[0]], text)


def test_the_figures_of_a_system():
    found = parsed(exposition(metrics(system())))
    place = (("group", "billing"), ("partition", "0"), ("topic", "orders"))
    assert found["kafka_consumergroup_lag", *place] == 40
    assert found["kafka_consumergroup_lag_seconds", *place] == 30
    assert found["penstock_retention_left_seconds", *place] == 3600
    assert found["kafka_topic_partition_current_offset", ("partition", "1"), ("topic", "orders")] == 50
    own = (("flow", "bill"), ("pipeline", "shop"))
    assert found["penstock_flow_rows_total", *own] == 1000
    assert found["penstock_flow_up", *own] == 1
    assert found["penstock_flow_restarts_total", *own] == 2
    assert found["penstock_flow_watermark_delay_seconds", *own] == 40
    phase = ("flow", "bill"), ("phase", "addBatch"), ("pipeline", "shop")
    assert found["penstock_flow_batch_duration_seconds", *phase] == 0.5
    assert found["penstock_dead_letters", ("topic", "orders")] == 4
    assert found["penstock_dead_letters_kept", ("topic", "orders")] == 9
    assert found["penstock_capture_lag_bytes", ("capture", "shop")] == 2048
    assert found["penstock_scrape_errors",] == 0


def test_a_histogram_is_cumulative_and_ends_with_all():
    found = parsed(exposition(metrics(system())))
    buckets = {
        dict(labels)["le"]: value
        for (name, *labels), value in found.items()
        if name == "penstock_flow_latency_seconds_bucket"
    }
    assert list(buckets.values()) == sorted(buckets.values())
    assert (buckets["0.1"], buckets["1"], buckets["+Inf"]) == (500, 1000, 1000)
    own = (("flow", "bill"), ("pipeline", "shop"))
    assert found["penstock_flow_latency_seconds_count", *own] == 1000
    assert found["penstock_flow_latency_seconds_sum", *own] == 123.5


def test_flows_that_are_rebuilt_and_those_of_namespaces_are_apart():
    flows = flow(), flow(generation=2), flow("team:shop.bill")
    found = parsed(exposition(metrics(system(flows=flows))))
    assert len([key for key in found if key[0] == "penstock_flow_up"]) == 3


@pytest.mark.parametrize("state", ["running", "stopped", "done"])
def test_a_shadow_wakes_nobody_when_it_ends(state):
    flows = flow(), flow(generation=2, state=state, shadow=True)
    found = parsed(exposition(metrics(system(flows=flows))))
    assert [dict(labels) for name, *labels in found if name == "penstock_flow_up"] == [
        {"flow": "bill", "pipeline": "shop"}
    ]
    rows = [dict(labels) for name, *labels in found if name == "penstock_flow_rows_total"]
    assert {"flow": "bill", "pipeline": "shop", "generation": "2"} in rows


@pytest.mark.parametrize("rebuilds", [True, False])
def test_a_runner_says_of_a_generation_that_it_is_not_at_work_yet(rebuilds):
    job = SimpleNamespace(
        label="shop.bill", identity=Identity("shop.bill", 2), topics=(), rebuilds=rebuilds, flow=MagicMock()
    )
    job.flow.looks_up.values.return_value = job.flow.target.topics = ()
    run = SimpleNamespace(job=job, status="done", restarts=0, troubles=(), history=BatchHistory())
    said = StatusPublisher(Settings(), "shop", [])._status(run)
    assert (said.shadow, said.generation) == (rebuilds, 2)


def test_what_an_older_release_has_published_is_of_no_shadow():
    older = json.loads(flow().to_json())
    del older["shadow"]
    assert FlowStatus.from_json(json.dumps(older).encode()) == flow()


def test_a_flow_whose_process_is_gone_is_down():
    found = parsed(exposition(metrics(system(flows=[flow(at=system().at - 100)]))))
    assert found["penstock_flow_up", ("flow", "bill"), ("pipeline", "shop")] == 0


def test_rows_of_state_that_nobody_counts_have_no_value():
    uncounted = flow(samples=(sample(AT - 2, state_rows=None),))
    found = parsed(exposition(metrics(system(flows=[uncounted]))))
    own = (("flow", "bill"), ("pipeline", "shop"))
    assert ("penstock_flow_state_rows", *own) not in found
    assert found["penstock_flow_state_bytes", *own] == 2_000_000


def test_names_of_strangers_are_escaped():
    odd = 'a"b\\c\nd'
    found = parsed(exposition(metrics(System(0.0, groups=(group(odd, lags=[lag()]),)))))
    assert found["penstock_consumergroup_members", ("group", odd)] == 1


def test_an_empty_system_declares_every_metric_that_a_full_one_has():
    empty, full = (
        {line.split(" ")[2] for line in exposition(metrics(each)).splitlines() if line.startswith("# TYPE")}
        for each in (System(0.0), system())
    )
    assert empty == full


@pytest.mark.parametrize("value", [float("inf"), float("-inf"), 1e-9, 1e300, 2**60, 0.1, -3])
def test_numbers_come_back(value):
    assert parsed(exposition([Metric("m", "gauge", "", (Point(value, {}),))]))[("m",)] == value


def test_wrong_names_are_refused():
    with pytest.raises(ConfigurationError, match="_total"):
        Metric("rows", "counter", "")
    with pytest.raises(ConfigurationError, match="metric"):
        Metric("rows read", "gauge", "")
    with pytest.raises(ConfigurationError, match="label"):
        Point(1, {"le-": ""})
