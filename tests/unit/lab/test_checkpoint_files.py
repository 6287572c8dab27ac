"""What is read of Spark's checkpoint: plans, commits, and the versions of state."""

import pytest

from penstock.lab.checkpoint_files import CheckpointFiles


@pytest.fixture
def folder(tmp_path):
    for name in ("offsets", "commits", "state"):
        (tmp_path / name).mkdir()
    return tmp_path


def plan(folder, batch, *lines):
    (folder / "offsets" / str(batch)).write_text("\n".join(["v1", "{}", *lines]))


def test_a_flow_that_has_not_begun_has_nothing(tmp_path):
    files = CheckpointFiles(tmp_path / "nowhere")
    assert (files.planned, files.committed, files.end(None)) == (None, None, {})
    assert files.state_versions(2) == [0, 0]


def test_a_batch_is_planned_and_then_committed(folder):
    plan(folder, 0, '{"events": {"0": 5, "1": 7}}', "-")
    plan(folder, 1, '{"events": {"0": 9, "1": 7}}', '{"clock": {"0": 1}}')
    (folder / "offsets" / ".1.crc").touch()
    (folder / "commits" / "0").touch()
    files = CheckpointFiles(folder)
    assert (files.planned, files.committed) == (1, 0)
    assert files.end(0) == {"events": {0: 5, 1: 7}}
    assert files.end(1) == {"events": {0: 9, 1: 7}, "clock": {0: 1}}


def test_what_is_half_written_is_not_there_yet(folder):
    plan(folder, 3, '{"events": {"0"')
    assert CheckpointFiles(folder).end(3) == {}


def test_a_step_has_the_version_that_all_its_partitions_have(folder):
    for step, partition, name in [(0, 0, "4.changelog"), (0, 1, "3.zip"), (1, 0, "4_7f3a.changelog")]:
        place = folder / "state" / str(step) / str(partition)
        place.mkdir(parents=True, exist_ok=True)
        (place / name).touch()
    (folder / "state" / "0" / "_metadata").mkdir()
    assert CheckpointFiles(folder).state_versions(2) == [4, 3]  # the first step is the last one of Spark's
