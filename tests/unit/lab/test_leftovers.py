"""What a lab that was killed has left is removed by the next one, by its manifest, and nothing besides."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from penstock.control.process_identity import identity
from penstock.errors import PenstockError
from penstock.lab import removal
from penstock.lab.leftovers import sweep
from penstock.lab.manifest import Manifest, folder_of
from penstock.settings import Secret, Settings

KILLED = """
import os, signal, subprocess, sys
from penstock.lab.control import Slider
from penstock.lab.experiment import Experiment
from penstock.lab.run import Run
from penstock.settings import Settings
from pathlib import Path

class Child:
    alive = True
    pid = subprocess.Popen(["sleep", "60"], stdout=subprocess.DEVNULL, start_new_session=True).pid

experiment = Experiment("one", "One", "?", (), (), "", "log.md", print)
run = Run(experiment, Settings(data=Path(sys.argv[1])), {})
run.adopt(Child())
print(run.id, Child.pid, run.folder(), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def settings(tmp_path):
    return Settings(data=tmp_path / "data")


def swept(settings):
    said = []
    sweep(settings, said.append)
    return said


def test_a_killed_lab_leaves_nothing(settings):
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(settings.data)], stdout=subprocess.PIPE, text=True, check=False
    )
    run, pid, folder = done.stdout.split()
    child = psutil.Process(int(pid))
    assert child.is_running()
    (line,) = swept(settings)
    assert f"run {run} " in line
    assert not child.is_running() or child.status() == psutil.STATUS_ZOMBIE
    assert not Path(folder).exists()
    assert not [*folder_of(settings).glob("*.json")]
    assert swept(settings) == []


def test_a_run_whose_lab_lives_is_left_alone(settings, tmp_path):
    manifest = Manifest(settings, "one")
    manifest.note("folders", str(tmp_path))
    assert swept(settings) == []
    assert tmp_path.exists()
    assert manifest.path.exists()
    manifest.forget()
    assert not manifest.path.exists()


def as_of_a_dead_lab(settings, **noted):
    """Write a manifest of a process that is no more."""
    process = subprocess.Popen(["sleep", "60"])
    lab = identity(psutil.Process(process.pid))
    process.kill()
    process.wait()
    path = folder_of(settings) / "gone.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"lab": lab, **noted}))
    return path


def test_a_process_that_has_its_number_by_now_is_left_alone(settings):
    with subprocess.Popen(["sleep", "60"]) as other:
        described = identity(psutil.Process(other.pid))
        before = described | {"since_boot": described["since_boot"] - 1, "started": time.time() - 900}
        as_of_a_dead_lab(settings, processes=[before])
        assert len(swept(settings)) == 1
        assert other.poll() is None
        other.kill()


def test_what_it_had_in_kafka_and_postgresql_is_removed(settings, monkeypatch):
    removed = []
    monkeypatch.setattr(removal, "remove_slot", lambda _, **what: removed.append(what))
    monkeypatch.setattr(removal, "remove_schema", lambda _, name: removed.append(name))
    monkeypatch.setattr(removal, "remove_logs", lambda _, **what: removed.append(what))
    slot = {"slot": "lab_gone", "publication": "lab_gone"}
    logs = {"topics": ["lab.one.gone."], "groups": ["lab.one.gone."]}
    path = as_of_a_dead_lab(settings, logs=[logs], slots=[slot], schemas=["lab_gone"])
    swept(settings)
    assert removed == [slot, "lab_gone", logs]  # the slot first: it reads the schema, and keeps the log
    assert not path.exists()


def test_what_can_t_be_removed_now_is_removed_the_next_time(settings, monkeypatch, tmp_path):
    def fail(*_):
        raise PenstockError("PostgreSQL is down")

    folder = tmp_path / "folder"
    folder.mkdir()
    monkeypatch.setattr(removal, "remove_schema", fail)
    path = as_of_a_dead_lab(settings, schemas=["lab_gone"], folders=[str(folder)])
    (line,) = swept(settings)
    assert "PostgreSQL is down" in line
    assert path.exists()
    assert not folder.exists()


def test_a_slot_that_can_t_be_dropped_is_named_with_the_command_that_drops_it():
    lost = Settings(postgres=Secret("postgresql://nobody@127.0.0.1:1/none"))
    with pytest.raises(PenstockError, match="'lab_gone' is left") as failed:
        removal.remove_slot(lost, "lab_gone", "lab_gone")
    assert "pg_drop_replication_slot('lab_gone')" in failed.value.hint
    with pytest.raises(PenstockError, match="'lab_gone' is left") as failed:
        removal.remove_schema(lost, "lab_gone")
    assert 'DROP SCHEMA IF EXISTS "lab_gone" CASCADE' in failed.value.hint


MOURNING = """
import json, subprocess, sys, time
from penstock.lab.mourning import end_with
end_with(json.loads(sys.argv[1]))
print(subprocess.Popen(["sleep", "60"], stdout=subprocess.DEVNULL).pid, flush=True)
time.sleep(60)
"""


def test_a_pipeline_ends_when_the_lab_is_killed():
    with subprocess.Popen(["sleep", "60"]) as lab:
        described = json.dumps(identity(psutil.Process(lab.pid)))
        pipeline = subprocess.Popen(
            [sys.executable, "-c", MOURNING, described],
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        child = psutil.Process(int(pipeline.stdout.readline()))
        assert pipeline.poll() is None
        lab.kill()
    assert pipeline.wait(20) == -signal.SIGKILL
    pipeline.stdout.close()
    psutil.wait_procs([child], 5)
    assert not child.is_running() or child.status() == psutil.STATUS_ZOMBIE
