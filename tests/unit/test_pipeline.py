"""Flows and pipelines as values: what is refused when they are described."""

from dataclasses import dataclass, replace
from datetime import datetime
from types import SimpleNamespace

import pytest
from pyspark.errors import AnalysisException

from penstock.errors import FlowError, LogError, TargetError
from penstock.events import Event
from penstock.log import Topic
from penstock.pipeline import Pipeline, flow_run
from penstock.pipeline.job import Cut, flow_job
from penstock.pipeline.plan import _refuse_missing
from penstock.pipeline.state import compare_state, unfit_state
from penstock.pipeline.trouble import explained
from penstock.targets import KafkaTarget, PostgresTable, Target


@dataclass(frozen=True)
class Tick(Event):
    at: datetime


ticks = Topic("ticks", Tick)
tocks = Topic("tocks", Tick)
captured = Topic("db.ticks", Tick, key="id", format="debezium-json")
table = PostgresTable("ticks")


def describe(name="copy", **options):
    pipeline = Pipeline("clock")

    def copy(ticks):
        return ticks

    copy.__name__ = name
    assert pipeline.flow(**{"reads": {"ticks": ticks}, "writes": tocks} | options)(copy) is copy
    return pipeline.flows[name]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"reads": {}}, "reads nothing"),
        ({"reads": {"tacks": ticks}}, r"reads \['tacks'\], its function takes \['ticks'\]"),
        ({"writes": ticks}, "writes the topic it reads"),
        ({"mode": "batch"}, "mode 'batch'"),
        ({"guarantee": "effectively-once"}, "can't be effectively-once in stream mode"),
        ({"mode": "realtime", "guarantee": "exactly-once"}, "can't be exactly-once in realtime mode"),
        ({"mode": "realtime", "writes": table}, "second flow in stream mode"),
        ({"mode": "realtime", "checkpoint_interval": "1 second"}, "expected 5 s or more"),
        ({"name": "a flow"}, "not a flow's name"),
        ({"writes": captured}, "writes debezium-json to 'db.ticks', which only a capture writes"),
        ({"side_outputs": (captured,)}, "which only a capture writes"),
    ],
)
def test_what_cannot_be_is_refused_when_it_is_described(options, message):
    with pytest.raises(FlowError, match=message):
        describe(**options)


@pytest.mark.parametrize("mode", ["stream", "realtime", "replay"])
def test_a_topic_can_be_read_under_one_name(mode):
    pipeline = Pipeline("clock")
    with pytest.raises(FlowError, match="reads a topic twice"):

        @pipeline.flow(reads={"one": ticks, "two": ticks}, writes=tocks, mode=mode)
        def both(one, two):
            return one.union(two)


class Webhook(Target):
    """A target that can't be replayed."""

    guarantees = {"stream": ("at-least-once",)}  # noqa: RUF012

    def sink(self, schema, options):
        raise NotImplementedError


def test_a_target_says_what_it_can_guarantee():
    assert describe(writes=Webhook()).effective_guarantee == "at-least-once"
    with pytest.raises(FlowError, match="can't be exactly-once in stream mode"):
        describe(writes=Webhook(), guarantee="exactly-once")
    with pytest.raises(FlowError, match="can't write a Webhook in replay mode"):
        describe(writes=Webhook()).in_mode("replay")


class Keyed(Webhook):
    upsert_key = ("card",)


def test_a_column_that_the_target_wants_is_not_missing():
    _refuse_missing(describe(writes=Keyed()), SimpleNamespace(columns=["card", "at"]))
    with pytest.raises(FlowError, match=r"gives no column 'card'.*it gives at"):
        _refuse_missing(describe(writes=Keyed()), SimpleNamespace(columns=["at"]))
    Keyed.upsert_key = "card"
    with pytest.raises(TargetError, match=r"upsert_key of Keyed is a text.*\(.card.,\)"):
        describe(writes=Keyed())


def test_what_can_not_be_planned_is_not_tried_again():
    job = flow_job(Pipeline("clock"), describe())
    found = explained(AnalysisException("[UNRESOLVED_COLUMN] no card"), job, "")
    assert isinstance(found, FlowError)
    assert "no card" in str(found)


def test_what_real_time_has_not_is_not_tried_again():
    said = (
        "[STREAM_FAILED] Query [id = 1] terminated with exception: "
        "[STREAMING_REAL_TIME_MODE.OPERATOR_OR_SINK_NOT_IN_ALLOWLIST] Streaming real-time mode has the "
        "following limitation: The operator(s): SortMergeJoinExec are not in the operator allowlist for "
        "Real-Time Mode. To bypass this check, set spark.x to false. SQLSTATE: 0A000 SQLSTATE: XXKST"
    )
    found = explained(RuntimeError(said), flow_job(Pipeline("clock"), describe()), "")
    assert isinstance(found, FlowError)
    assert "SortMergeJoinExec are not in the operator allowlist for Real-Time Mode; use stream" in str(found)
    assert isinstance(explained(RuntimeError(said.replace("NOT_IN", "IN")), None, ""), RuntimeError)


def test_what_is_no_target_is_refused():
    with pytest.raises(TargetError, match="expected a Topic or a Target"):
        describe(writes="alerts")
    with pytest.raises(TargetError, match="give its topic"):
        describe(writes=KafkaTarget(describe().writes))


def test_the_guarantee_is_that_of_the_mode_unless_less_is_asked_for():
    assert describe().effective_guarantee == "exactly-once"
    assert describe(guarantee="at-least-once").effective_guarantee == "at-least-once"
    assert describe(mode="realtime").effective_guarantee == "effectively-once"
    assert describe(guarantee="at-least-once").in_mode("realtime").effective_guarantee == "effectively-once"
    with pytest.raises(FlowError, match="PostgresTable in realtime"):
        describe(writes=table).in_mode("realtime")


def test_a_pipeline_has_each_flow_once():
    pipeline = Pipeline("clock")

    def copy(ticks):
        return ticks

    add = pipeline.flow(reads={"ticks": ticks}, writes=tocks)
    add(copy)
    with pytest.raises(FlowError, match="two flows 'copy'"):
        add(copy)


def test_what_a_changed_flow_can_keep_is_found():
    before = {"reads": ["a", "b"], "state": [{"step": "Aggregate", "shape": ["card string", "n bigint"]}]}
    after = {"reads": ["b", "c"], "state": [{"step": "Aggregate", "shape": ["card string", "n double"]}]}
    found = {each.subject: (each.kept, each.reason) for each in compare_state(before, after)}
    assert found["position in a"] == (False, "the flow does not read it any more")
    assert found["position in b"][0]
    assert not found["position in c"][0]
    assert found["state of step 1 (Aggregate)"] == (False, "it had n bigint, it would have n double")
    assert all(each.kept for each in compare_state(before, before))


class NoBroker:
    """An attempt that fails at once."""

    batches, failure = 0, None

    def __init__(self, *given, **more):
        pass

    def run(self):
        raise OSError("there is no broker")


def test_trouble_is_logged_if_nobody_else_hears(monkeypatch, caplog):
    monkeypatch.setattr(flow_run, "Attempt", NoBroker)
    run = flow_run.FlowRun(
        flow_job(Pipeline("clock"), describe()), None, None, SimpleNamespace(path=""), lanes=1
    )
    run.start()
    assert not run.wait(0.5)
    run.stop()
    assert run.wait(5)
    assert caplog.messages == ["copy tries again in 1 s: there is no broker"]


def run_of(monkeypatch, attempt, **options):
    monkeypatch.setattr(flow_run, "Attempt", attempt)
    checkpoint = SimpleNamespace(path="")
    return flow_run.FlowRun(
        flow_job(Pipeline("clock"), describe()), None, None, checkpoint, lanes=1, **options
    )


def test_a_flow_that_has_begun_anew_has_nothing_to_pass_over_in_its_next_try(monkeypatch):
    tries = []

    class BreaksOff:
        batches, failure = 0, None

        def __init__(self, job, *_):
            self.job = job

        def forget(self):
            tries.append("forgotten")
            return replace(self.job, cut=None)

        def run(self):
            tries.append(self.job.cut)
            raise LogError("there is no broker")

    monkeypatch.setattr(flow_run, "_LONGEST_PAUSE", 0.0)
    run = run_of(monkeypatch, BreaksOff, anew=True, once=True, report=lambda *_: None)
    run.job = replace(run.job, cut=Cut({"ticks": {0: 9}}))
    run.start()
    assert run.wait(20)
    assert tries[:3] == ["forgotten", Cut({"ticks": {0: 9}}), None]


def test_nobody_who_listens_can_end_a_flow(monkeypatch):
    """The disk of the log is full, or who reads the output is gone, which ends a thread without a trace."""

    class NoBroker:
        batches, failure = 0, None

        def __init__(self, *_):
            pass

        def run(self):
            raise LogError("there is no broker")

    def gone(*_):
        raise SystemExit

    run = run_of(monkeypatch, NoBroker, report=gone)
    run.start()
    assert not run.wait(0.5)
    assert run.status == "waiting"
    run.stop()
    assert run.wait(5)
    assert run.status == "stopped"


def test_a_flow_never_dies_in_silence(monkeypatch):
    """Even if what goes wrong can't be reported: a dead Java can't say what its error was."""

    class Dead(Exception):
        def __str__(self):
            raise ConnectionRefusedError

    class NoJava:
        batches, failure = 0, None

        def __init__(self, *_):
            pass

        def run(self):
            raise Dead

    run = run_of(monkeypatch, NoJava)
    run.start()
    assert run.wait(5)
    assert (run.status, type(run.failure)) == ("failed", ConnectionRefusedError)


def test_state_that_spark_refuses_is_not_tried_again():
    message = (
        "StreamingQueryException: [STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE] Provided value schema …\nat …"
    )
    assert "STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE" in str(unfit_state(message))
    assert unfit_state("[CANNOT_OPEN_SOCKET] timed out") is None


def test_a_checkpoint_of_spark_s_own_watermark_is_not_a_changed_flow():
    before = {"version": "1", "reads": ["views"], "state": []}
    found = list(compare_state(before, {**before, "reads": ["_penstock_clock.pages.by_hour", "views"]}))
    assert [each.kept for each in found] == [False, True]
    assert "Spark's own" in found[0].reason


def test_topics_that_spark_would_take_for_one_another_are_refused():
    """Spark knows a position by the place of its source in the plan."""
    before = {"version": "1", "reads": ["a", "b"], "state": [], "sources": ["a", "b"]}
    assert all(each.kept for each in compare_state(before, before))
    swapped = [each for each in compare_state(before, {**before, "sources": ["b", "a"]}) if not each.kept]
    assert [each.subject for each in swapped] == ["positions"]
    clock = "_penstock_clock.pages.by_hour"
    earlier = {"version": "1", "reads": [clock, "views"], "state": [{"step": "Aggregate", "shape": []}]}
    after = {**earlier, "sources": [clock, "views"]}
    assert not all(each.kept for each in compare_state(earlier, after))
