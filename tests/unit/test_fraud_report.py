"""How the fraud demo knows what waited for a checkpoint from what did not."""

from datetime import UTC, datetime

import pytest

from penstock.apps.fraud.events import Alert
from penstock.apps.fraud.report import Report, time_alerts
from penstock.pipeline.progress import Progress, ProgressStore
from penstock.settings import Settings

BEGAN = 1_000_000.0


def alert(made: float, took: float, reason: str = "many") -> tuple[float, Alert]:
    at = datetime.fromtimestamp(BEGAN + made, UTC)
    return BEGAN + made + took, Alert("card", "user", reason, [], at, id=f"{made}/{reason}")


@pytest.fixture
def settings(tmp_path):
    """Of a run in which the batch of one flow ended after 10 seconds."""
    started = datetime.fromtimestamp(BEGAN, UTC).isoformat()
    store = ProgressStore(tmp_path / "progress.db")
    store.add(Progress("fraud", "suspicious", "run", 0, started, 1, 10.0, None, {}))
    store.close()
    return Settings(data=tmp_path)


def timed(settings, *emitted):
    report = Report(rate=1, steady_since=BEGAN, steady_until=BEGAN + 100)
    time_alerts(report, settings, emitted)
    return [round(took, 3) for took in report.between], [round(took, 3) for took in report.waited]


def test_what_is_made_before_and_during_a_checkpoint_and_emitted_late_has_waited_for_it(settings):
    emitted = [alert(9, 0.02), alert(9.9, 1.1), alert(10.5, 0.6), alert(11.1, 0.3), alert(11.5, 0.02)]
    assert timed(settings, *emitted) == ([0.02, 0.02], [1.1, 0.6, 0.3])


def test_what_is_late_at_another_time_has_not(settings):
    emitted = [alert(5, 0.5), alert(10.1, 0.4), alert(11, 0.02), alert(12, 0.7)]
    assert timed(settings, *emitted) == ([0.5, 0.02, 0.7], [0.4])


def test_a_checkpoint_of_one_flow_is_none_of_the_other(settings):
    assert timed(settings, alert(10.1, 0.4, "taken-over")) == ([0.4], [])


def test_checkpoints_of_the_steady_time_are_counted(settings):
    for until, checkpoints in ((100, 1), (9, 0)):
        report = Report(rate=1, steady_since=BEGAN, steady_until=BEGAN + until)
        time_alerts(report, settings, [])
        assert report.checkpoints == checkpoints


def test_what_is_emitted_outside_of_the_steady_time_does_not_count(settings):
    assert timed(settings, alert(-1, 0.02), alert(99, 2)) == ([], [])
