"""Systems that were really ill, as they were written down: the doctor says the same of them again."""

from pathlib import Path

import pytest
from tests.integration.ward import recorded

from penstock.ops.doctor.checks import diagnose

FOLDER = Path(__file__).parent / "recorded"
EXPECTED = {
    "healthy": set(),
    "planted": {("keys.hot", "sick."), ("group.idle-members", "crowd.")},
    "busy": {("lag.growing", "busy.slow"), ("state.growing", "busy.keeps")},
    "times": {
        ("time.late", "times.late"),
        ("watermark.stuck", "times.quiet"),
        ("watermark.stuck", "times.ahead"),
    },
    "hurt": {
        ("records.poison", "hurt.divides"),
        ("target.behind", "hurt.waits"),
        ("target.behind", "hurt.drips"),
    },
    "twice": {("output.duplicates", "copies.")},
    "log": {
        ("transactions.stuck", "writer."),
        ("lag.stopped", "left."),
        ("lag.stopped", "storm."),
        ("group.rebalancing", "storm."),
        ("schema.missing-events", "renamed."),
        ("settings.contradiction", "strict."),
        ("capture.slot", "postgres/slot_"),
    },
}


@pytest.mark.parametrize("name", EXPECTED)
def test_a_recorded_system_has_its_illnesses_and_no_others(name):
    findings = diagnose(*recorded(FOLDER / f"{name}.json"))
    assert {(each.id, each.subject) for each in findings} == EXPECTED[name]


def test_every_recording_is_read():
    assert {path.stem for path in FOLDER.glob("*.json")} == set(EXPECTED)
