"""The watermark advisor: numbers equal to those of a plain count, on random logs and on a real topic."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from random import Random

import pytest
from tests.integration.explained import Sale
from tests.integration.test_flows import run_once, send

from penstock.errors import SettingsError
from penstock.log import Broker, Topic, apply
from penstock.log.archive.tiers import Tiers
from penstock.ops.lateness import advise, measured
from penstock.ops.lateness.ladder import LADDER
from penstock.pipeline import Pipeline
from penstock.process import read
from penstock.process.columns.names import SOURCE_TYPE

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


def random_log(random, partition):
    """Events of up to three writers, each in some disorder, and some dated far ahead."""
    found = []
    for offset in range(random.randrange(1, 120)):
        written = NOON + timedelta(seconds=offset)
        lane = random.randrange(3)
        behind = random.choice((0, 0, random.expovariate(0.1), random.expovariate(0.001)))
        at = written + timedelta(days=2) if random.random() < 0.02 else written - timedelta(seconds=behind)
        found.append((at, partition, offset, written, lane))
    return found


def late_by_hand(log, delay):
    """By the definition: an earlier event of the same writer is newer by more than the delay."""
    kept = [each for each in log if each[0] <= each[3] + HOUR]
    return sum(
        any(other[4] == each[4] and other[2] < each[2] and other[0] - each[0] > delay for other in kept)
        for each in kept
    )


def test_the_counts_are_those_of_the_definition(spark):
    logs = {partition: random_log(Random(partition), partition) for partition in range(25)}
    rows = [
        (at, ("t", partition, offset, written, [("penstock.made-by", f"p.f up/{lane}/{offset}".encode())]))
        for log in logs.values()
        for at, partition, offset, written, lane in log
    ]
    frame = spark.createDataFrame(rows, f"at timestamp, _source struct<{SOURCE_TYPE}>")
    found = measured(frame, "at", HOUR, dict.fromkeys(range(26)), timedelta(seconds=7))
    for each in found[:25]:
        log = logs[each.number]
        assert list(each.late) == [late_by_hand(log, delay) for delay in LADDER]
        assert each.at_delay == late_by_hand(log, timedelta(seconds=7))
        assert each.ahead == sum(at > written + HOUR for at, _, _, written, _ in log)
        assert each.events + each.ahead == len(log)
    assert found[25].is_empty
    advice = advise(found, 0.02)
    events = sum(each.events for each in found)
    late = [sum(late_by_hand(log, delay) for log in logs.values()) / events for delay in LADDER]
    assert advice.delay == LADDER[next(place for place, share in enumerate(late) if share <= 0.02)]
    assert (advice.empty, advice.needs_future) == ((25,), True)


def test_a_real_topic_and_what_a_flow_wrote_lane_by_lane(settings, spark, unique):
    first = Topic(f"late.{unique}", Sale, key="customer", partitions=3)
    copied = Topic(f"copied.{unique}", Sale, key="customer")
    apply([first, copied], Broker(settings))
    made = []
    for number in range(200):
        behind = 4 if number % 50 == 49 else 0  # four seconds behind the one before
        at = NOON + timedelta(seconds=number - behind, milliseconds=1)
        made.append(Sale(f"c{number % 2}", Decimal(1), at, id=f"s{number}"))
    send(settings, first, made)
    found = measured(
        read(spark, first, settings), "at", HOUR, Tiers(settings).offsets(first.name), timedelta(seconds=1)
    )
    assert sum(each.events for each in found) == 200
    assert sum(each.at_delay for each in found) == 4
    pipeline = Pipeline(f"copy{unique}")
    pipeline.flow(name="copy", reads={"sales": first}, writes=copied)(lambda sales: sales)
    run_once(pipeline, settings, spark)
    [again] = measured(
        read(spark, copied, settings), "at", HOUR, Tiers(settings).offsets(copied.name), timedelta(seconds=1)
    )
    assert again.writers == len([each for each in found if not each.is_empty])
    assert again.events == 200
    assert again.at_delay == 4  # lanes make nothing late


def test_a_share_that_is_none_is_refused():
    with pytest.raises(SettingsError, match="expected from 0"):
        advise([], 1.5)
