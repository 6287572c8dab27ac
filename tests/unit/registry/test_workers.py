"""Schemas of strangers are judged in processes that are ended at their limits, and replaced."""

import subprocess
import sys
import threading
import time
from datetime import timedelta

import psutil
import pytest

from penstock.errors import ConfigurationError, CostlySchemaError, InvalidSchemaError, ServiceError
from penstock.registry.judge import LocalJudge, Source
from penstock.registry.limits import Limits
from penstock.registry.workers import Workers
from penstock.schemas.compatibility import Mode, SchemaKind
from penstock.settings import Settings

TEXT = Source(SchemaKind.AVRO, '"string"')
PROTO = 'syntax = "proto3"; message Order { %s id = 1; }'
SPINS = Source(SchemaKind.JSON, "spin")
GREEDY = Source(SchemaKind.JSON, "memory")
# A schema that still took too long or too much would be mended: so a worker gets what to do.
PLANTED = """
import time
from penstock.registry import judge, worker

def canonical(self, schema):
    if schema.text == "sleep":
        time.sleep(600)
    if schema.text == "spin":
        while True:
            pass
    if schema.text == "memory":
        return str(len(bytearray(10**10)))
    if schema.text == "bug":
        raise KeyError("bug")
    return judge.LocalJudge.parsed(self, schema).canonical

judge.LocalJudge.canonical = canonical
main = worker.main
"""


@pytest.fixture
def planted(tmp_path, monkeypatch):
    """Workers whose judge can be made to fail."""
    (tmp_path / "planted_worker.py").write_text(PLANTED)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr("penstock.registry.workers._MODULE", "planted_worker")


@pytest.fixture
def workers(planted):
    found = Workers(Limits(timedelta(seconds=3), memory=256, workers=2))
    yield found
    found.close()


@pytest.fixture
def usual():
    found = Workers(Limits(timedelta(seconds=20), workers=1))
    yield found
    found.close()


def test_verdicts_are_those_of_this_process(usual):
    local = LocalJudge()
    old, new = (Source(SchemaKind.PROTOBUF, PROTO % kind) for kind in ("int64", "string"))
    assert usual.canonical(new) == local.canonical(new)
    assert usual.problems(new, [old], Mode.BACKWARD) == local.problems(new, [old], Mode.BACKWARD) != []
    wrong = Source(SchemaKind.PROTOBUF, PROTO % "no")
    with pytest.raises(InvalidSchemaError) as ours:
        local.canonical(wrong)
    with pytest.raises(InvalidSchemaError) as theirs:
        usual.canonical(wrong)
    assert str(ours.value) == str(theirs.value)
    assert str(ours.value).startswith("line 1, column ")


def test_a_worker_finds_the_well_known_types(usual):
    text = 'syntax = "proto3"; import "google/protobuf/timestamp.proto"; message A { %s at = 1; }'
    timed = Source(SchemaKind.PROTOBUF, text % "google.protobuf.Timestamp")
    assert usual.canonical(timed) == LocalJudge().canonical(timed)


def test_a_schema_that_takes_too_long_hurts_nobody_else(workers):
    for each in list(workers._all):
        each.wait_until_ready()
    late = []
    thread = threading.Thread(target=lambda: late.append(refusal(workers, SPINS)))
    thread.start()
    time.sleep(0.2)
    assert workers.canonical(Source(SchemaKind.AVRO, '"long"')) == '"long"'
    assert not late, "it did not wait for the other"
    thread.join()
    assert "takes more than 3 s" in late[0]
    assert workers.canonical(Source(SchemaKind.AVRO, '"bytes"')) == '"bytes"'


def refusal(workers, source):
    with pytest.raises(CostlySchemaError) as caught:
        workers.canonical(source)
    return str(caught.value)


def test_a_schema_that_takes_too_much_memory(workers):
    assert "needs more than 256 MB" in refusal(workers, GREEDY)
    assert workers.canonical(TEXT) == '"string"'


def test_a_schema_that_waits_for_nothing_is_ended_too(planted):
    found = Workers(Limits(timedelta(seconds=1), workers=1))
    assert "takes more than 1 s" in refusal(found, Source(SchemaKind.JSON, "sleep"))
    found.close()


def test_a_bug_is_reported_and_the_next_schema_is_judged(workers, caplog):
    with pytest.raises(InvalidSchemaError, match="KeyError"):
        workers.canonical(Source(SchemaKind.JSON, "bug"))
    assert "planted_worker" in caplog.text or "canonical" in caplog.text
    assert workers.canonical(TEXT) == '"string"'


def test_verdicts_are_kept(workers):
    assert workers.canonical(TEXT) == '"string"'
    for each in list(workers._all):
        each.end()
    assert workers.canonical(TEXT) == '"string"', "nobody was asked"


def test_a_worker_that_died_while_idle_is_replaced(workers):
    workers.canonical(TEXT)
    for each in list(workers._all):
        each.wait_until_ready()
        each._process.kill()
        each._process.wait()
    assert workers.canonical(Source(SchemaKind.AVRO, '"long"')) == '"long"'


def test_who_waits_too_long_is_sent_away(planted):
    found = Workers(Limits(timedelta(seconds=2), workers=1))
    found._patience = 0.1
    found.canonical(TEXT)
    thread = threading.Thread(target=lambda: refusal(found, SPINS))
    thread.start()
    time.sleep(0.3)
    with pytest.raises(ServiceError, match="busy"):
        found.canonical(Source(SchemaKind.AVRO, '"long"'))
    thread.join()
    found.close()


def test_closing_leaves_no_process_and_no_folder(workers):
    workers.canonical(TEXT)
    processes = [each._process for each in workers._all]
    folders = [each._folder for each in workers._all]
    workers.close()
    assert all(process.poll() is not None for process in processes)
    assert not any(folder.exists() for folder in folders)


def test_an_orphan_ends_itself(planted, tmp_path):
    """The server is killed while a worker runs in circles."""
    code = (
        "import sys, threading, time\n"
        "from datetime import timedelta\n"
        "from penstock.registry import workers\n"
        "workers._MODULE = 'planted_worker'\n"
        "found = workers.Workers(workers.Limits(timedelta(seconds=1), workers=1))\n"
        "(one,) = found._all\n"
        "one.wait_until_ready()\n"
        "one._connection.send(('canonical', (workers.Source('JSON', 'spin'),)))\n"
        "print(one._process.pid, flush=True)\n"
        "time.sleep(600)\n"
    )
    path = [str(tmp_path), *filter(None, sys.path)]
    server = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env={"PYTHONPATH": ":".join(path)}
    )
    orphan = psutil.Process(int(server.stdout.readline()))
    server.kill()
    server.wait()
    assert psutil.wait_procs([orphan], timeout=60)[1] == []


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"deadline": "-1 s"}, "not a duration"),
        ({"memory": "much"}, "whole number"),
        ({"workers": "0"}, "1 worker or more"),
        ({"color": "red"}, "unknown setting 'color'"),
    ],
)
def test_limits_are_checked(given, says):
    with pytest.raises(ConfigurationError, match=says):
        Limits.of(Settings(registry=given))
    assert Limits.of(Settings(registry={"deadline": "3 seconds", "memory": "100"})).memory == 100
