"""A flow is only waited for at the points that it passes in its mode."""

import pytest
from tests.integration.shop import receipts, sales, suspects

from penstock.errors import FlowError
from penstock.pipeline import Pipeline
from penstock.settings import Settings
from penstock.targets import PostgresTable
from penstock.testing import CrashHarness, points_of

AROUND = ["flow.planned", "flow.written", "flow.committed"]
KAFKA = ["sink.kafka.opened", "sink.kafka.sent", "sink.kafka.committed", "sink.kafka.written"]
POSTGRES = [f"sink.postgres.{each}" for each in ("opened", "staged", "before-merge", "merged", "committed")]


def made(target, **options):
    pipeline = Pipeline("p")

    @pipeline.flow(reads={"rows": sales}, writes=target, **options)
    def copy(rows):
        return rows

    return pipeline


@pytest.mark.parametrize(
    ("target", "options", "points"),
    [
        (receipts, {}, [AROUND[0], *KAFKA, *AROUND[1:]]),
        (receipts, {"guarantee": "at-most-once"}, [AROUND[0], *KAFKA, *AROUND[1:]]),
        (PostgresTable("t"), {}, [AROUND[0], *POSTGRES, *AROUND[1:]]),
        (PostgresTable("t"), {"guarantee": "at-least-once"}, [AROUND[0], *POSTGRES, *AROUND[1:]]),
        (
            PostgresTable("t"),
            {"side_outputs": (suspects,)},
            [AROUND[0], *KAFKA, "sink.side-outputs.written", *POSTGRES, *AROUND[1:]],
        ),
        (receipts, {"guarantee": "at-least-once"}, ["results.written", "flow.committed"]),
        (receipts, {"mode": "realtime"}, ["results.written", "flow.committed"]),
        (receipts, {"mode": "replay"}, KAFKA),
    ],
)
def test_points_are_those_that_the_flow_passes(target, options, points):
    assert points_of(made(target, **options).flows["copy"]) == points


def test_each_point_of_the_longest_way_has_its_round():
    pipeline = made(receipts, mode="realtime")

    @pipeline.flow(reads={"rows": receipts}, writes=PostgresTable("t"))
    def keep(rows):
        return rows

    settings = Settings(kafka={"bootstrap.servers": "localhost:1"})
    harness = CrashHarness(pipeline, "m.py", settings, feed=print)
    try:
        rounds = harness.rounds()
    finally:
        harness.close()
    assert [each["keep"] for each in rounds] == [AROUND[0], *POSTGRES, *AROUND[1:]]
    assert [each["copy"] for each in rounds[:3]] == ["results.written", "flow.committed", "results.written"]


def test_a_replay_is_refused_because_it_ends_by_itself():
    with pytest.raises(FlowError, match="'copy' of 'p' is a replay"):
        CrashHarness(made(receipts, mode="replay"), "m.py", Settings(), feed=print)
