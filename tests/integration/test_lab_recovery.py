"""Checkpoint and recovery: the counts that are shown are those of a plain reader, kill for kill."""

from collections import Counter

import pytest
from tests.laboratory import tried
from tests.plain_reader import left_behind, plainly_read

from penstock.lab.experiments.recovery.experiment import EXPERIMENT
from penstock.lab.experiments.recovery.pipelines import GUARANTEES
from penstock.lab.experiments.recovery.work import CHAINED

PATIENCE = 400.0


def test_events_come_while_spark_starts_and_nothing_is_left(settings):
    with tried(EXPERIMENT, settings, rate=100) as run:
        figures = run.until(lambda now: now["sent"] > 50)
        assert figures["process"] == "starting"
        assert figures["exactly_once_lost"] == figures["at_most_once_lost"] == 0
        log = plainly_read(settings, run.name_of("events"))
        assert sorted(each["n"] for each in log)[:50] == list(range(50))
        id = run.frame["run"]
    assert left_behind(settings, id) == []


def _settled(run, names):
    """Let no more events come, and wait until each of them is a result, or lost."""
    run.change(rate=0)
    run.until(lambda now: now["process"] == "working", PATIENCE)
    return run.until(lambda now: all(now[f"{each}_waiting"] == 0 for each in names), PATIENCE)


def _compare(settings, run, figures, name, topic):
    sent = {each["n"] for each in plainly_read(settings, run.name_of("events"))}
    counts = Counter(each["n"] for each in plainly_read(settings, run.name_of(topic)))
    assert counts.keys() <= sent
    found = Counter(counts[each] for each in sent)
    assert figures[f"{name}_exact"] == found[1]
    assert figures[f"{name}_lost"] == found[0]
    assert figures[f"{name}_doubled"] == len(sent) - found[0] - found[1]


@pytest.mark.long
@pytest.mark.timeout(1500)
def test_each_guarantee_keeps_its_word_and_no_other(settings):
    with tried(EXPERIMENT, settings, rate=200, interval=2) as run:
        run.until(lambda now: now["exactly_once_exact"] > 200, PATIENCE)
        run.press("kill_in_batch")
        run.until(lambda now: now["kills"] == 1, PATIENCE)
        run.until(lambda now: now["lives"][-1]["caught_up"], PATIENCE)
        run.change(interval=1)
        run.press("kill")
        figures = run.until(lambda now: now["kills"] == 2 and now["lives"][-1]["caught_up"], PATIENCE)
        assert [each["interval"] for each in figures["lives"]] == [2, 2, 1]
        assert [each["is_recovery"] for each in figures["lives"]] == [False, True, True]
        assert figures["lives"][0]["batches_a_minute"] is not None
        names = [each.replace("-", "_") for each in GUARANTEES]
        figures = _settled(run, names)
        for topic, name in zip(GUARANTEES, names, strict=True):
            _compare(settings, run, figures, name, topic)
        assert figures["exactly_once_lost"] == figures["exactly_once_doubled"] == 0
        assert figures["at_most_once_doubled"] == figures["at_least_once_lost"] == 0
        assert figures["at_most_once_lost"] > 0
        assert figures["at_least_once_doubled"] > 0


@pytest.mark.long
@pytest.mark.timeout(1500)
def test_a_batch_cuts_three_steps_at_the_same_offsets(settings):
    with tried(EXPERIMENT, settings, rate=60, interval=2, subject=CHAINED) as run:
        run.until(lambda now: now["steps_exact"] > 100, PATIENCE)
        run.press("kill_in_batch")
        run.until(lambda now: now["kills"] == 1 and now["lives"][-1]["caught_up"], PATIENCE)
        figures = _settled(run, ["steps"])
        assert figures["steps_lost"] == figures["steps_doubled"] == 0
        _compare(settings, run, figures, "steps", "steps")
        run.until(
            lambda now: {each["version"] for each in now["steps"]} == {now["steps_batch"] + 1}, PATIENCE
        )
        log = {each["n"]: each["key"] for each in plainly_read(settings, run.name_of("events"))}
        of_keys = Counter(log.values())
        most = Counter()
        for each in plainly_read(settings, run.name_of("steps")):
            most[each["group"]] = max(most[each["group"]], each["most"])
        assert most == _most(of_keys)


def _most(of_keys):
    groups = {key[0] for key in of_keys}
    return {group: max(count for key, count in of_keys.items() if key[0] == group) for group in groups}
