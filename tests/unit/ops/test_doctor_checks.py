"""Each check of the doctor: it fires on its illness, with the numbers, and is silent on what is healthy."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.archive.status import ArchiveStatus
from penstock.capture.status import CaptureStatus
from penstock.errors import SettingsError
from penstock.local import ServiceStatus
from penstock.log.groups import Member
from penstock.ops.doctor.checks import CHECKS, check_ids, diagnose
from penstock.ops.doctor.probes import (
    Collections,
    DeclaredFlow,
    Difference,
    Disk,
    Held,
    OpenTransaction,
    Probes,
    Rebalances,
    Slot,
)
from penstock.ops.doctor.topic_sample import SampledRecord, TopicSample
from penstock.ops.lateness import advise
from penstock.ops.lateness.ladder import LADDER, spelled
from penstock.ops.lateness.measuring import Partition
from penstock.ops.model import (
    DeadLetterStatus,
    GroupStatus,
    PartitionLag,
    PartitionRange,
    System,
    TopicStatus,
)
from penstock.pipeline.flow_status import FlowStatus, Sample, Trouble
from penstock.replica.status import ReplicaStatus

NOW = 1_800_000_000.0
GIB = 2**30


def samples(count=12, **figures):
    """Samples ten seconds apart; a figure is a number, or a function of the sample's number."""
    made = []
    for number in range(count):
        at = NOW - 10.0 * (count - 1 - number)
        own = {name: value(number) if callable(value) else value for name, value in figures.items()}
        usual = {"rows": 1000, "seconds": 1.0, "behind": 20, "watermark": at - 30, "newest": at - 1,
                 "state_rows": 5000, "state_bytes": 1 << 20, "state_ms": 100.0, "sink_ms": 200.0,
                 "overhead_ms": 150.0}  # fmt: skip
        made.append(Sample(at=at, batch=number, **usual | own))
    return tuple(made)


def flow(label="shop.bill", **more):
    usual = {"state": "running", "at": NOW - 2, "started": NOW - 900, "process": "here/77",
             "guarantee": "exactly-once", "reads": ("sales",), "writes": ("bills",),
             "target": "topic bills", "samples": samples()}  # fmt: skip
    return FlowStatus(label, **usual | more)


def topic(name="sales", partitions=(5000, 5100, 4900), replication=1, **config):
    named = {key.replace("_", "."): value for key, value in config.items()}
    ranges = {number: PartitionRange(0, end, end) for number, end in enumerate(partitions)}
    return TopicStatus(name, ranges, replication, named)


def sample(name="sales", count=300, **figures):
    """Records two seconds apart over two partitions; figures as those of samples."""
    records = []
    for number in range(count):
        own = {name: value(number) if callable(value) else value for name, value in figures.items()}
        at = NOW - 2.0 * (count - number)
        usual = {"key": f"k{number % 30}", "id": f"e{number}", "time": at - 1, "fields": ("id", "user", "at")}
        records.append(SampledRecord(number % 2, number // 2, at, **usual | own))
    return TopicSample(name, tuple(sorted(records, key=lambda each: (each.partition, each.offset))))


def group(name="billing", judgement="ok", members=2, lags=None, **more):
    found = [PartitionLag("sales", number, 90, 100, 5.0, "ok", left=600_000.0) for number in range(3)]
    held = tuple(Member(f"m{n}", None, "here", (("sales", n),) if n < 3 else ()) for n in range(members))
    return GroupStatus(name, "consumer", "stable", held, tuple(lags or found), judgement, **more)


HEALTHY = System(
    NOW,
    services=(ServiceStatus("kafka", "running", 5, "127.0.0.1:9092", "4", 900.0, Path("kafka.log")),),
    topics=(topic(), topic("bills"), topic("_penstock_status.shop", (9,), cleanup_policy="compact")),
    groups=(
        group(),
        group("penstock.shop.bill", members=0, lags=[PartitionLag("sales", 0, 90, 90, 0.0, "ok")]),
    ),
    flows=(flow(),),
    captures=(CaptureStatus("bank", "running", "here/5", "reserved", 10, 4096, 0.1, 9, None, "done", ""),),
    replicas=(ReplicaStatus("copy", "bank", "public", "running", "here/9", 2, 0, 0.0, None, ""),),
    archives=(ArchiveStatus("sales", "s3", "running", 3, 90, 1, 9, "1 day", "1 hour", 2.0, "here/4", ""),),
    dead_letters=(DeadLetterStatus("sales.dead-letters", "sales", 0, kept=3),),
)  # fmt: skip
PROBED = Probes(
    samples={"sales": sample(), "bills": sample("bills")},
    disks=(Disk("data", 100 * GIB, 60 * GIB),),
    slots=(Slot("other", "postgres", True, "reserved", GIB),),
    rebalances=(Rebalances("billing", 3, 500.0, NOW - 400),),
    collections=(Collections("here/77", 0.02, 600.0),),
    declared=(DeclaredFlow("shop.bill", "stream", ("sales",), (), 60.0, 0.0),),
    broker={"message.max.bytes": "1048588", "transaction.max.timeout.ms": "900000"},
    host="here",
    cores=2,
)  # fmt: skip


def found(id, system=HEALTHY, probes=PROBED):
    """The only finding of all checks; that others are silent about an illness is part of each test."""
    findings = diagnose(system, probes)
    assert [each.id for each in findings] == [id], findings
    (only,) = findings
    assert only.cause
    assert only.hint
    assert only.subject
    return only


def with_flow(**more):
    return replace(HEALTHY, flows=(flow(**more),))


def test_a_healthy_system_has_no_findings():
    assert diagnose(HEALTHY, PROBED) == []
    assert diagnose(System(NOW), Probes()) == []


@given(
    rows=st.integers(0, 10_000_000),
    seconds=st.floats(0.01, 4.0),
    noise=st.lists(st.floats(0.0, 1.0), min_size=24, max_size=24),
    state=st.integers(0, 10**9),
    count=st.integers(1, 24),
)
def test_a_steady_flow_has_no_findings_whatever_its_rates(rows, seconds, noise, state, count):
    """What waits goes up and down within a batch, state within a tenth: no trend is seen in it."""
    steady = samples(
        count,
        rows=rows,
        seconds=lambda n: seconds * (1 + noise[n] / 10),
        behind=lambda n: int(rows * noise[n]),
        state_rows=lambda n: int(state * (1 + noise[n] / 10)),
        sink_ms=seconds * 300,
        state_ms=seconds * 200,
        overhead_ms=min(seconds * 400, 1500.0),
    )
    assert diagnose(with_flow(samples=steady), PROBED) == []


@pytest.mark.parametrize(
    ("figures", "cause"),
    [
        ({}, "reading and its function"),
        ({"sink_ms": 5000.0}, "its target"),
        ({"state_ms": 1500.0}, "its state"),
        ({"overhead_ms": 1800.0}, "planning and checkpoints"),
    ],
)
def test_growing_lag_names_the_part_that_takes_longest(figures, cause):
    growing = samples(behind=lambda n: 2000 * n, seconds=6.0 if "sink_ms" in figures else 2.5, **figures)
    seen = [each for each in diagnose(with_flow(samples=growing), PROBED) if each.id == "lag.growing"]
    assert seen[0].cause.startswith(cause)
    assert (seen[0].evidence["behind_before"], seen[0].evidence["behind_now"]) == (0, 22_000)
    assert seen[0].evidence["rows_per_second"] == 100.0


def test_batches_that_become_longer_are_growing_lag_too():
    slower = samples(behind=0, seconds=lambda n: 2.0 * 1.4**n)
    assert found("lag.growing", with_flow(samples=slower)).evidence["batch_seconds_now"] > 60


def test_growing_lag_by_few_partitions_collections_or_restarts():
    growing = with_flow(samples=samples(behind=lambda n: 2000 * n))
    assert "fewer partitions" in found("lag.growing", growing, replace(PROBED, cores=16)).cause
    collecting = replace(PROBED, collections=(Collections("here/77", 0.4, 60.0),))
    blamed = found("lag.growing", growing, collecting)
    assert "garbage collection" in blamed.cause
    assert blamed.evidence["collection_share"] == 0.4
    often = tuple(Trouble(NOW - 300 + n, f"trouble {n}") for n in range(3))
    restarted = with_flow(samples=samples(behind=lambda n: 2000 * n), troubles=often, restarts=3)
    assert "started again" in found("lag.growing", restarted).cause


def test_a_group_that_falls_behind():
    lags = [PartitionLag("sales", n, 50, 9_000, 300.0, "warning", left=500_000.0) for n in range(3)]
    behind = group(judgement="warning", lags=lags)
    seen = found("lag.growing", replace(HEALTHY, groups=(behind,)))
    assert seen.evidence["events"] == 26_850
    assert "more of them" in seen.cause
    full = group(judgement="warning", lags=lags, members=3)
    assert "more partitions" in found("lag.growing", replace(HEALTHY, groups=(full,))).hint


def test_a_group_that_has_stopped_and_one_before_a_poison_record():
    gone = [PartitionLag("sales", n, 50, 90, 300.0, "stopped", left=500_000.0) for n in range(3)]
    stopped = group(judgement="stopped", lags=gone, members=0)
    assert "nobody reads" in found("lag.stopped", replace(HEALTHY, groups=(stopped,))).cause
    lags = [PartitionLag("sales", 0, 50, 90, 300.0, "stalled"), PartitionLag("sales", 1, 90, 90, 0.0, "ok")]
    stuck = replace(HEALTHY, groups=(group(judgement="stalled", lags=lags),))
    assert [each.id for each in diagnose(stuck, PROBED)] == ["records.poison", "lag.stopped"]
    assert diagnose(stuck, PROBED)[0].evidence["position"] == 50


def behind_flow(seconds=300.0, **more):
    """A flow whose group has stopped while events wait."""
    lags = [PartitionLag("sales", n, 50, 90, seconds, "stopped", left=500_000.0) for n in range(3)]
    own = group("penstock.shop.bill", "stopped", lags=lags, members=0)
    return replace(HEALTHY, groups=(own,), flows=(flow(**more),))


def test_events_that_wait_for_a_flow_that_was_stopped():
    seen = found("lag.stopped", behind_flow(state="stopped", at=NOW - 7200))
    assert (seen.subject, seen.severity, seen.evidence["events"]) == ("shop.bill", "warning", 120)
    assert seen.evidence["ended_seconds_ago"] == 7200.0
    assert "it is stopped" in seen.summary
    assert "penstock run shop" in seen.hint


def stopped_just_now(state="stopped", seconds=20.0):
    lags = [PartitionLag("sales", n, 50, 90, seconds, "ok", left=500_000.0) for n in range(3)]
    own = group("penstock.shop.bill", lags=lags, members=0)
    return replace(HEALTHY, groups=(own,), flows=(flow(state=state, at=NOW - 25),))


def test_a_flow_that_somebody_has_stopped_just_now_is_mentioned_at_once():
    seen = found("lag.stopped", stopped_just_now())
    assert (seen.subject, seen.severity, seen.is_trouble) == ("shop.bill", "info", False)
    assert seen.summary == "120 events wait, the oldest for 20 seconds, and it is stopped"


@pytest.mark.parametrize(
    "system",
    [
        pytest.param(stopped_just_now(state="done"), id="one that was run once rests"),
        pytest.param(stopped_just_now(seconds=0.0), id="marks of transactions wait for nobody"),
    ],
)
def test_what_needs_nobody_after_a_flow_has_ended_is_not_mentioned(system):
    assert diagnose(system, PROBED) == []


def test_a_flow_that_was_run_once_may_rest_for_a_day():
    resting = found("lag.stopped", behind_flow(state="done", at=NOW - 7200))
    assert (resting.severity, resting.is_trouble) == ("info", False)
    forgotten = found("lag.stopped", behind_flow(90_000.0, state="done", at=NOW - 90_000))
    assert (forgotten.severity, forgotten.subject) == ("warning", "shop.bill")


@pytest.mark.parametrize(
    ("more", "ids"),
    [
        ({"state": "running"}, []),
        ({"state": "waiting"}, []),
        ({"state": "failed"}, ["flow.failed"]),
        ({"at": NOW - 100}, ["flow.silent"]),
    ],
)
def test_of_a_flow_that_has_not_ended_its_own_checks_say_why_it_stands(more, ids):
    assert [each.id for each in diagnose(behind_flow(**more), PROBED)] == ids


def test_a_shadow_at_work_does_not_hide_that_its_flow_was_stopped():
    system = behind_flow(state="stopped", at=NOW - 50)
    system = replace(system, flows=(*system.flows, flow(generation=1, shadow=True)))
    assert found("lag.stopped", system).subject == "shop.bill"


def test_events_that_are_about_to_be_deleted_unread():
    lags = [PartitionLag("sales", 0, 50, 90, 500_000.0, "ok", left=4_800.0)]
    system = replace(HEALTHY, topics=(topic(retention_ms="604800000"),), groups=(group(lags=lags),))
    seen = found("lag.retention", system)
    assert (seen.severity, seen.evidence["left_seconds"]) == ("error", 4800.0)
    gone = replace(HEALTHY, groups=(group(lags=[replace(lags[0], left=0.0, lost=40)]),))
    assert found("lag.retention", gone).evidence["lost"] == 40


def test_more_members_than_partitions():
    seen = found("group.idle-members", replace(HEALTHY, groups=(group(members=5),)))
    assert (seen.evidence["members"], seen.evidence["idle"], seen.evidence["partitions"]) == (5, 2, 3)
    just_joined = replace(PROBED, earlier=HEALTHY)
    assert diagnose(replace(HEALTHY, groups=(group(members=5),)), just_joined) == []


def test_a_group_that_is_spread_anew_all_the_time():
    storm = replace(PROBED, rebalances=(Rebalances("billing", 9, 300.0, NOW - 5),))
    assert found("group.rebalancing", probes=storm).evidence["rebalances"] == 9
    over = replace(PROBED, rebalances=(Rebalances("billing", 9, 600.0, NOW - 300),))
    assert diagnose(HEALTHY, over) == []


@pytest.mark.parametrize(
    ("guarantee", "severity"), [("exactly-once", "error"), ("effectively-once", "warning")]
)
def test_duplicates_in_what_a_flow_writes(guarantee, severity):
    twice = replace(
        PROBED, samples={"bills": sample("bills", id=lambda n: f"e{n // 2}" if n < 20 else f"e{n}")}
    )
    seen = found("output.duplicates", with_flow(guarantee=guarantee), twice)
    assert (seen.severity, seen.evidence["duplicates"], seen.evidence["ids"]) == (severity, 10, 10)


def test_duplicates_in_a_topic_that_is_declared():
    twice = replace(PROBED, samples={"sales": sample(id=lambda n: f"e{n // 2}")}, events=("sales",))
    assert found("output.duplicates", probes=twice).severity == "warning"


def test_long_ids_and_keys_are_told_apart_by_all_of_them():
    stem = "x" * 60  # what is shown
    own = {"id": stem, "id_hash": lambda n: f"i{n}", "key": stem, "key_hash": lambda n: f"k{n % 30}"}
    apart = replace(PROBED, samples={"bills": sample("bills", **own)})
    assert diagnose(HEALTHY, apart) == []
    own |= {"id_hash": lambda n: f"i{n // 2}", "key_hash": lambda n: f"k{n % 30}" if n % 3 else "hot"}
    again = diagnose(HEALTHY, replace(PROBED, samples={"bills": sample("bills", **own)}))
    twice, hot = again
    assert (twice.id, twice.evidence["duplicates"], twice.evidence["example"]) == (
        "output.duplicates",
        150,
        stem,
    )
    assert twice.evidence["places"] == "0@0 1@0"
    assert (hot.id, hot.evidence["key"], hot.evidence["share"]) == ("keys.hot", stem, 0.33)


def test_an_id_in_the_records_of_strangers_is_not_taken_for_one_of_an_event():
    """As of rows that were captured, or of a topic that no module of ours knows."""
    assert diagnose(HEALTHY, replace(PROBED, samples={"sales": sample(id="same")})) == []


def test_the_same_id_again_in_a_compacted_topic_is_no_duplicate():
    twice = replace(PROBED, samples={"bills": sample("bills", id="same")})
    assert diagnose(replace(HEALTHY, topics=(topic("bills", cleanup_policy="compact"),)), twice) == []


def test_late_events_come_with_a_delay_that_would_have_waited():
    disordered = {"sales": sample(time=lambda n: NOW - 2.0 * (300 - n) - (50 if n % 40 == 7 else 0))}
    seen = found("time.late", with_flow(samples=samples(late=3)), replace(PROBED, samples=disordered))
    assert (seen.evidence["late"], seen.evidence["suggested_delay"]) == (36, "1 minute")
    assert seen.evidence["disorder_seconds_most"] == 46.0


@pytest.mark.parametrize(("total", "severity"), [(0, "info"), (4, "warning")])
def test_disorder_is_only_mentioned_where_nothing_was_dropped(total, severity):
    """As a late policy may take in what comes after the watermark."""
    disordered = {"sales": sample(time=lambda n: NOW - 2.0 * (300 - n) - (50 if n % 40 == 7 else 0))}
    seen = found("time.late", with_flow(late=total), replace(PROBED, samples=disordered))
    assert (seen.severity, seen.is_trouble) == (severity, total > 0)
    assert seen.summary == (
        "its topics are in disorder by up to 46.0 s, and its watermark trails its newest event by 29.0 s"
    )
    assert seen.evidence["trails_seconds"] == 29.0
    assert ("dropped none" in seen.hint) == (total == 0)
    assert "windows" in seen.hint.partition("late=")[0], "other flows have no late policy"
    assert 'watermark="1 minute"' in seen.hint


@pytest.mark.parametrize("seconds", [34, 61, 3_590, 3_610, 5_000, 800_000, 10_000_000])
def test_the_doctor_suggests_the_delay_that_the_advisor_recommends(seconds):
    """Both see the same ten of three hundred events; the advisor counts those behind each delay."""
    disordered = sample(time=lambda n: NOW - 2.0 * (300 - n) - (seconds + 2 if n % 30 == 7 else 0))
    late = tuple(sum(each > step.total_seconds() for each in disordered.disorder()) for step in LADDER)
    worst = timedelta(seconds=max(disordered.disorder()))
    advised = advise([Partition(0, 300, late=late, worst=worst)], 0.001)
    seen = found("time.late", with_flow(late=1), replace(PROBED, samples={"sales": disordered}))
    assert seen.evidence["suggested_delay"] == spelled(advised.delay)


def test_lanes_that_run_ahead_of_each_other_are_no_disorder():
    """Flows judge events by those of the same writer, and so does the watermark advisor."""
    lanes = sample(
        time=lambda n: NOW - 2.0 * (300 - n) - (50 if n // 2 % 2 else 0),
        writer=lambda n: f"shop.make raw/{n // 2 % 2}",
    )
    assert max(lanes.disorder()) == 0.0
    assert diagnose(HEALTHY, replace(PROBED, samples={"sales": lanes})) == []
    one = replace(lanes, records=tuple(replace(each, writer="") for each in lanes.records))
    assert max(one.disorder()) == 46.0


def test_as_few_late_events_as_the_advisor_recommends_are_only_mentioned():
    few = with_flow(samples=samples(late=lambda n: 12 if n == 3 else 0))
    assert found("time.late", few).severity == "info"
    assert not found("time.late", few).is_trouble
    assert found("time.late", with_flow(samples=samples(late=lambda n: 13 if n == 3 else 0))).is_trouble


def test_processing_time():
    sick = DeclaredFlow(
        "shop.bill", "stream", ("sales",), (), 60.0, 0.0, ("F.current_timestamp() in line 7",)
    )
    assert "line 7" in found("time.processing-time", probes=replace(PROBED, declared=(sick,))).summary


def test_a_watermark_that_waits_for_a_quiet_partition():
    still = samples(watermark=NOW - 900)
    quiet = sample()
    records = tuple(replace(each, at=each.at - 900) if each.partition else each for each in quiet.records)
    seen = found("watermark.stuck", with_flow(samples=still), replace(PROBED, samples={
        "sales": replace(quiet, records=records)}))  # fmt: skip
    assert seen.evidence["quiet_partitions"] == "sales[1]"
    assert seen.evidence["seconds"] == 110.0


def test_a_watermark_that_was_taken_into_the_future():
    ahead = sample(time=lambda n: NOW + 90_000 if n == 299 else NOW - 2.0 * (300 - n))
    seen = found("watermark.stuck", with_flow(samples=samples(watermark=NOW + 86_400)),
                 replace(PROBED, samples={"sales": ahead}))  # fmt: skip
    assert (seen.severity, seen.evidence["ahead_seconds"], seen.evidence["example"]) == (
        "error",
        86_400,
        "1@149",
    )


def test_an_idle_stream_is_only_mentioned():
    idle = with_flow(
        samples=tuple(replace(each, at=each.at - 500, watermark=each.at - 530) for each in samples())
    )
    assert found("watermark.stuck", idle).severity == "info"


@pytest.mark.parametrize(("phase", "look_at"), [("walCommit", "storage"), ("latestOffset", "broker")])
def test_a_slow_checkpoint_and_its_phase(phase, look_at):
    phases = {"addBatch": 2.0, "walCommit": 0.1, phase: 5.0, "triggerExecution": 7.5}
    slow = with_flow(samples=samples(seconds=7.5, overhead_ms=5500.0), phases=phases)
    seen = found("checkpoint.slow", slow)
    assert (seen.evidence["phase"], seen.evidence["seconds"]) == (phase, 5.5)
    assert look_at in seen.hint
    state = with_flow(samples=samples(seconds=7.5, state_ms=4500.0))
    assert found("checkpoint.slow", state).evidence["phase"] == "state"


def test_state_that_grows_without_a_watermark():
    growing = samples(state_rows=lambda n: 10_000 + 9_000 * n, watermark=None)
    seen = found("state.growing", with_flow(samples=growing))
    assert (seen.evidence["rows_before"], seen.evidence["rows_now"]) == (10_000, 109_000)
    assert seen.evidence["rows_per_hour"] == 3_240_000
    uncounted = samples(state_rows=None, state_bytes=lambda n: n << 30, watermark=None)
    assert diagnose(with_flow(samples=uncounted), PROBED) == []
    fills_up = samples(state_rows=lambda n: int(100_000 * (1 - 0.5**n)), watermark=None)
    assert diagnose(with_flow(samples=fills_up), PROBED) == []


def test_a_hot_key_and_a_partition_that_is_larger():
    hot = replace(PROBED, samples={"sales": sample(key=lambda n: "k1" if n % 3 else f"k{n}")})
    seen = found("keys.hot", probes=hot)
    assert (seen.evidence["key"], seen.evidence["share"]) == ("k1", 0.67)
    large = replace(HEALTHY, topics=(topic(partitions=(90_000, 4_000, 5_000)),))
    assert found("partitions.skew", large).evidence["share"] == 0.91


def test_events_that_go_missing_after_a_change_of_schema():
    unknown = replace(sample(schema=lambda n: 9 if n > 200 else 3), unknown=(9,))
    assert found("schema.missing-events", probes=replace(PROBED, samples={"sales": unknown})).evidence[
        "records"] == 99  # fmt: skip
    broken = sample(error=lambda n: "user is missing" if n >= 250 else "")
    seen = found("schema.missing-events", probes=replace(PROBED, samples={"sales": broken}))
    assert (seen.evidence["records"], seen.evidence["all_since"]) == (50, "yes")
    renamed = sample(fields=lambda n: ("id", "visitor", "at") if n >= 200 else ("id", "user", "at"))
    seen = found("schema.missing-events", probes=replace(PROBED, samples={"sales": renamed}))
    assert (seen.evidence["field"], seen.evidence["new_fields"]) == ("user", "visitor")
    assert (seen.evidence["with"], seen.evidence["without"]) == (200, 100)
    optional = sample(fields=lambda n: ("id", "note") if n % 7 == 0 and n < 200 else ("id",))
    assert diagnose(HEALTHY, replace(PROBED, samples={"sales": optional})) == []


def test_a_flow_that_fails_again_and_again():
    often = tuple(Trouble(NOW + n, "Division by zero") for n in range(3))
    seen = found("records.poison", with_flow(state="waiting", troubles=often, restarts=3))
    assert (seen.severity, seen.evidence["failures"]) == ("error", 3)
    away = tuple(Trouble(NOW + n, "database can't be reached") for n in range(3))
    assert (
        "waits for topic bills" in found("target.behind", with_flow(state="waiting", troubles=away)).summary
    )
    over = tuple(Trouble(NOW - 600 + n, "Division by zero") for n in range(3))
    assert diagnose(with_flow(troubles=over, restarts=3), PROBED) == []


def test_a_trouble_is_the_same_whatever_batch_stage_or_task_it_names():
    often = tuple(
        Trouble(NOW + n, f"batch {7 + n}: task {n}.0 in stage {30 + n}.0 (TID {n * 17}) Row@{n}f{n}a failed")
        for n in range(3)
    )
    seen = found("records.poison", with_flow(state="waiting", troubles=often, restarts=3))
    assert seen.evidence["failures"] == 3
    assert "batch 9" in seen.summary, "the newest of them is shown"
    away = tuple(Trouble(NOW + n, f"attempt {n}: connection refused") for n in range(3))
    assert found("target.behind", with_flow(state="waiting", troubles=away)).evidence["failures"] == 3
    system = behind_flow(state="waiting", troubles=away, samples=(), started=NOW - 900)
    assert found("target.behind", system).subject == "shop.bill", "and it is said once"


def test_a_slow_target():
    slow = with_flow(samples=samples(seconds=9.0, sink_ms=7500.0), target="table bills")
    seen = found("target.behind", slow)
    assert (seen.evidence["sink_seconds"], seen.evidence["share_sink"]) == (7.5, 0.83)


def test_a_transaction_that_hangs_is_aborted_only_where_its_writer_is_known_to_be_gone():
    held = Held("bills", 0, 40, 50, NOW - 300)
    hanging = OpenTransaction("penstock.shop.bill.0", NOW - 310, 900.0, (("bills", 0),))
    probes = replace(PROBED, held=(held,), transactions=(hanging,))
    alive = found("transactions.stuck", probes=probes)
    assert (alive.subject, alive.evidence["seconds"], alive.fix) == (hanging.id, 310.0, None)
    ended = found("transactions.stuck", with_flow(state="stopped"), probes)
    assert ended.fix is not None
    assert (ended.fix.action, ended.fix.subject) == ("abort-transaction", hanging.id)
    unnamed = found("transactions.stuck", probes=replace(probes, transactions=()))
    assert unnamed.subject == "bills[0]"
    assert diagnose(HEALTHY, replace(probes, held=(replace(held, since=NOW - 5),))) == []


def test_of_several_open_transactions_the_oldest_holds_readers_up():
    held = Held("bills", 0, 40, 50, NOW - 300)
    at_work = OpenTransaction("penstock.shop.bill.0", NOW - 3, 900.0, (("bills", 0),))
    hanging = OpenTransaction("stranger", NOW - 310, 900.0, (("bills", 0),))
    probes = replace(PROBED, held=(held,), transactions=(at_work, hanging))
    seen = found("transactions.stuck", with_flow(state="stopped"), probes)
    assert (seen.subject, seen.evidence["seconds"], seen.fix) == ("stranger", 310.0, None)


def test_slots_that_retain_much_or_are_lost():
    (capture,) = HEALTHY.captures
    grown = replace(HEALTHY, captures=(replace(capture, state="not running", retained=GIB),))
    assert found("capture.slot", grown).evidence["retained_bytes"] == GIB
    lost = replace(HEALTHY, captures=(replace(capture, slot="lost"),))
    assert found("capture.slot", lost).severity == "error"
    unread = replace(PROBED, slots=(Slot("old", "postgres", False, "extended", GIB),))
    assert "pg_drop_replication_slot('old')" in found("capture.slot", probes=unread).hint


def test_dead_letters_and_copies_behind():
    letters = DeadLetterStatus("sales.dead-letters", "sales", 7, NOW - 60, "amount is missing")
    seen = found("letters.waiting", replace(HEALTHY, dead_letters=(letters,)))
    assert (seen.evidence["letters"], seen.evidence["newest_seconds_ago"]) == (7, 60.0)
    assert "penstock topics redrive sales" in seen.hint
    of_webhook = replace(letters, topic="_penstock_dead-letters.shop.bill", source="shop.bill")
    assert "redrive_webhook" in found("letters.waiting", replace(HEALTHY, dead_letters=(of_webhook,))).hint
    (replica,) = HEALTHY.replicas
    behind = replace(HEALTHY, replicas=(replace(replica, lag=900, seconds=4000.0),))
    assert found("copies.behind", behind).evidence["behind"] == 900
    (archive,) = HEALTHY.archives
    broken = replace(HEALTHY, archives=(replace(archive, error="the bucket is gone"),))
    assert found("copies.behind", broken).severity == "error"


@pytest.mark.parametrize(("free", "severity"), [(12 * GIB, "warning"), (2 * GIB, "error")])
def test_a_disk_that_is_nearly_full(free, severity):
    seen = found("disk.full", probes=replace(PROBED, disks=(Disk("data", 100 * GIB, free),)))
    assert (seen.severity, seen.evidence["free_bytes"]) == (severity, free)


def test_settings_that_contradict_each_other():
    id = "settings.contradiction"
    strict = replace(HEALTHY, topics=(topic(min_insync_replicas="2"),))
    assert found(id, strict).evidence["min_insync_replicas"] == 2
    assert found(id, replace(HEALTHY, topics=(topic(),)), replace(PROBED, brokers=3)).evidence["brokers"] == 3
    large = replace(PROBED, clients={"message.max.bytes": "9000000"})
    assert found(id, replace(HEALTHY, topics=(topic(),)), large).evidence["message_max_bytes"] == 9_000_000
    short = replace(HEALTHY, topics=(topic(retention_ms="10000"),), groups=())
    assert found(id, short).evidence["delay_seconds"] == 29.0
    (declared,) = PROBED.declared
    long = replace(PROBED, declared=(replace(declared, timeout=7200.0),))
    assert found(id, probes=long).evidence["allowed_seconds"] == 900.0
    rare = replace(PROBED, declared=(replace(declared, interval=300.0),))
    assert found(id, probes=rare).severity == "info"
    compacted = replace(HEALTHY, topics=(topic(cleanup_policy="compact"),))
    assert found(id, compacted).evidence["topic"] == "sales"


def test_a_topic_that_is_not_as_declared_is_fixed_only_where_nothing_is_deleted():
    def difference(action="configure", **settings):
        named = {key.replace("_", "."): value for key, value in settings.items()}
        return replace(PROBED, differences=(Difference("sales", action, named),))

    assert found("settings.differ", probes=difference(max_message_bytes=("1", "2"))).fix is not None
    assert found("settings.differ", probes=difference("create")).fix is not None
    assert found("settings.differ", probes=difference(retention_ms=("5", "9"))).fix is not None
    assert found("settings.differ", probes=difference(retention_bytes=(None, "-1"))).fix is not None
    assert found("settings.differ", probes=difference(min_compaction_lag_ms=("5", "9"))).fix is not None
    any_time = difference(message_timestamp_after_max_ms=(None, str(2**63 - 1)))
    assert found("settings.differ", probes=any_time).fix is not None
    for unsafe in ({"retention_ms": ("9", "5")}, {"retention_ms": (None, "5")}, {"retention_ms": ("-1", "5")},
                   {"retention_bytes": ("9", "5")}, {"retention_bytes": ("-1", "5")},
                   {"min_compaction_lag_ms": ("9", "5")}, {"max_compaction_lag_ms": ("9", "5")},
                   {"max_message_bytes": ("9", "5")}, {"max_message_bytes": (None, "5")},
                   {"min_insync_replicas": ("2", "1")}, {"cleanup_policy": (None, "compact")},
                   {"retention_ms": ("5", "9"), "segment_ms": ("5", "9")},
                   {"message_timestamp_after_max_ms": (None, "5")},
                   {"message_timestamp_type": (None, "LogAppendTime")}):  # fmt: skip
        assert found("settings.differ", probes=difference(**unsafe)).fix is None, unsafe
    assert found("settings.differ", probes=difference("grow")).fix is None
    assert found("settings.differ", probes=difference("refuse")).severity == "error"


def test_flows_that_failed_or_went_silent_and_services_that_crashed():
    failed = with_flow(state="failed", troubles=(Trouble(NOW - 5, "the table is gone"),))
    assert "the table is gone" in found("flow.failed", failed).summary
    assert found("flow.silent", with_flow(at=NOW - 100)).evidence["process"] == "here/77"
    (kafka,) = HEALTHY.services
    assert (
        found("service.down", replace(HEALTHY, services=(replace(kafka, state="crashed"),))).subject
        == "kafka"
    )
    assert found("system.unanswered", replace(HEALTHY, unanswered=("groups: no answer",))).severity == "info"


def test_a_flow_that_lives_and_does_not_get_on():
    behind = PartitionLag("sales", 0, 100, 1000, 300.0, "stopped", left=600_000.0)
    waiting = group("penstock.shop.bill", "stopped", members=0, lags=(behind,))
    still = {"at": NOW - 2, "started": NOW - 400, "samples": ()}

    def stalled(**more):
        return replace(HEALTHY, groups=(group(), waiting), flows=(flow(**{**still, **more}),))

    bare = found("flow.stalled", stalled(state="starting"))
    assert bare.evidence["seconds"] == 400
    assert "starting" in bare.summary
    words = ("'ann' is no number", "'bob' is no number", "'eve' is no number")
    retried = tuple(Trouble(NOW - 60 + n, text) for n, text in enumerate(words))
    for state in ("running", "waiting"):
        looping = found("flow.stalled", stalled(troubles=retried, restarts=3, state=state))
        assert words[2] in looping.cause
    assert diagnose(stalled(state="waiting", shadow=True), PROBED, only=["flow.stalled"]) == []
    for healthy in ({"started": NOW - 60}, {"samples": samples(), "started": NOW - 900},
                    {"interval": "180000 milliseconds"}):  # fmt: skip
        assert diagnose(stalled(**healthy), PROBED, only=["flow.stalled"]) == []


def test_every_check_finds_only_its_own_id_and_unknown_ids_are_refused():
    assert len(set(check_ids())) == len(CHECKS)
    assert diagnose(with_flow(state="failed"), PROBED, only=["disk.full"]) == []
    blind = System(NOW, unanswered=("topics: no answer in 6 s",))
    assert [each.severity for each in diagnose(blind, Probes(), only=["lag.growing"])] == ["error"]
    with pytest.raises(SettingsError, match=r"no finding 'lag.grown'"):
        diagnose(HEALTHY, PROBED, only=["lag.grown"])
