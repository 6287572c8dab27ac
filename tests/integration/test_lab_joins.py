"""The three joins: what is counted as found is what a plain reader finds, and the truth that of the log."""

from datetime import datetime, timedelta

import pytest
from tests.laboratory import tried
from tests.plain_reader import left_behind, plainly_read

from penstock.lab.experiments.joins.experiment import EXPERIMENT
from penstock.lab.experiments.joins.work import KINDS

PATIENCE = 400.0
NEAR, LATEST, AS_OF, TABLES = KINDS


def test_both_sides_come_while_spark_starts_and_nothing_is_left(settings):
    with tried(EXPERIMENT, settings, kind=NEAR, rate=40) as run:
        figures = run.until(lambda now: now["sent_left"] > 20)
        assert figures["process"] == "starting"
        assert figures["results"] == figures["matched"] == figures["wrong"] == 0
        assert len(plainly_read(settings, run.name_of("left"))) >= 20
        assert {"left", "right"} == {each["kind"] for each in run.events}
        id = run.frame["run"]
    assert left_behind(settings, id) == []


def _quiet(run, is_settled):
    """Let no more events come, and wait until the results are there."""
    run.until(lambda now: now["process"] == "working" and now["sent_left"] > 150, PATIENCE)
    run.change(rate=0)
    return run.until(is_settled, PATIENCE)


def _at(event):
    return datetime.fromisoformat(event["at"])


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_two_streams(settings):
    with tried(EXPERIMENT, settings, kind=NEAR, reach=6, rate=20) as run:
        figures = run.until(lambda now: now.get("state_rows", 0) > 50 and now["matched"] > 40, PATIENCE)
        assert figures["state_bytes"] > 0
        run.change(rate=0)
        figures = run.until(
            lambda now: now["matched"] == now["truth_matched"] and now["unmatched"] == now["truth_unmatched"],
            PATIENCE,
        )
        assert figures["wrong"] == 0
        clicks, shown = (plainly_read(settings, run.name_of(side)) for side in ("left", "right"))
        of_key = {each["key"]: _at(each) for each in shown}
        reach = timedelta(seconds=6)
        near = [
            each
            for each in clicks
            if each["key"] in of_key and timedelta(0) <= _at(each) - of_key[each["key"]] <= reach
        ]
        assert figures["truth_matched"] == len(near)
        results = plainly_read(settings, run.name_of("results"))
        assert sum(None not in (each["left"], each["right"]) for each in results) == len(near)
        assert len(results) == len(clicks) + len(shown) - len(near)


@pytest.mark.long
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("kind", [LATEST, AS_OF])
def test_a_stream_and_a_table(settings, kind):
    with tried(EXPERIMENT, settings, kind=kind, reach=30, rate=20) as run:
        figures = _quiet(run, lambda now: now["results"] >= now["sent_left"])
        payments, rows = (plainly_read(settings, run.name_of(side)) for side in ("left", "right"))
        valid = {
            each["n"]: max(
                (row["n"] for row in rows if row["key"] == each["key"] and _at(row) <= _at(each)),
                default=None,
            )
            for each in payments
        }
        found = {each["left"]: each["right"] for each in plainly_read(settings, run.name_of("results"))}
        right = [n for n in valid if found[n] == valid[n]]
        assert figures["matched"] + figures["unmatched"] == len(right)
        assert figures["wrong"] == len(valid) - len(right)
        assert (
            figures["unmatched"] == figures["truth_unmatched"] == sum(each is None for each in valid.values())
        )
        if kind == AS_OF:
            assert figures["wrong"] == 0
        else:
            assert figures["newer"] > 0


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_two_tables(settings):
    with tried(EXPERIMENT, settings, kind=TABLES, rate=20) as run:
        figures = _quiet(run, lambda now: now["results"] > 0 and now["wrong"] == 0 and _agrees(now))
        assert figures["view"] == figures["truth_matched"] + figures["truth_unmatched"]
        assert figures["state_rows"] > 0


def _agrees(figures):
    return (
        figures["matched"] == figures["truth_matched"] and figures["unmatched"] == figures["truth_unmatched"]
    )
