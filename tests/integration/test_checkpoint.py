"""Files beside Spark's checkpoint: whenever a process is killed, each is the old one or the new one."""

import pytest

from penstock.pipeline.checkpoint import Checkpoint
from penstock.testing.sink_contract import Crash, crash_at


def test_a_file_that_is_being_replaced_is_never_missing(spark, tmp_path, monkeypatch):
    folder = tmp_path / "checkpoint"
    checkpoint = Checkpoint(spark, str(folder))
    assert checkpoint.read("mark.json") is None
    for number in (0, 2, 4):
        checkpoint.write("mark.json", str(number))
        with monkeypatch.context() as patch:
            crash_at(patch, "checkpoint.replacing")
            with pytest.raises(Crash):
                checkpoint.write("mark.json", str(number + 1))
        assert not (folder / "mark.json").exists()
        assert Checkpoint(spark, checkpoint.path).read("mark.json") == str(number + 1)
    checkpoint.write("mark.json", "last")
    assert checkpoint.read("mark.json") == "last"
    assert {path.name for path in folder.iterdir()} - {".mark.json.crc"} == {"mark.json"}


def test_a_draft_that_was_never_finished_does_not_count(spark, tmp_path):
    folder = tmp_path / "checkpoint"
    folder.mkdir()
    (folder / "mark.json.draft").write_text("hal")
    assert Checkpoint(spark, str(folder)).read("mark.json") is None
