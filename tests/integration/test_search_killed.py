"""An index whose writers are killed at any moment, or whose disk is full: whole batches, each once."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.integration.search_writer import batch, expected, lanes, rows

from penstock.errors import SinkError
from penstock.log.ledger import Entry
from penstock.targets.search import SearchIndex
from penstock.targets.search.folder import IndexFolder
from penstock.targets.search.reader import IndexReader

ROUNDS = 12
FULL_DISK = """
import resource, sys
from tests.integration.search_writer import *
from penstock.errors import SinkError
made = lanes(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))
lane = made.open(0)
try:
    lane.write([rows(1)], Entry(1, batch(1)))
except SinkError as error:
    print("refused", error)
lane.close()
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
assert made.read() == (Entry(1, batch(0)),), made.read()
lane = made.open(0)
lane.write([rows(1)], Entry(1, batch(1)))
lane.close()
"""


def contents(path):
    found = {}
    for each in IndexReader(IndexFolder(path)).batches():
        for row in each.to_pylist():
            assert row["id"] not in found, "a row is there twice"
            found[row["id"]] = row["n"]
    return found


def started(path, *program):
    command = [sys.executable, *(program or [str(Path(__file__).with_name("search_writer.py"))]), str(path)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def files(path):
    (generation,) = (path / "generations").iterdir()
    return {each.name for each in generation.iterdir()}


@pytest.mark.long
@pytest.mark.timeout(300)
def test_killed_at_random_moments_it_holds_whole_batches_with_their_entry(tmp_path):
    path, chance, last = tmp_path / "index", random.Random(7), -1
    for _ in range(ROUNDS):
        writer = started(path)
        writer.stdout.readline()
        time.sleep(chance.uniform(0, 0.2))
        writer.send_signal(signal.SIGKILL)
        writer.wait()
        assert writer.returncode == -signal.SIGKILL
        made = lanes(path, seconds=0.5)  # the lock of a killed process is free at once
        made.open(0).close()
        (entry,) = made.read()
        assert entry.batch.number > last
        last = entry.batch.number
        assert contents(path) == expected(last)
    lane = lanes(path).open(0)
    lane.write([rows(last + 1)], Entry(1, batch(last + 1)))
    lane.close()
    assert contents(path) == expected(last + 1)
    segments = {name.partition(".")[0] for name in files(path) if name[0] != "."}
    assert len(segments) < 20, "killed writers leave garbage"
    assert [row["id"] for row in SearchIndex(path).search("word3")] == [3]


def test_a_process_that_is_killed_while_it_holds_the_lock_leaves_it_free(tmp_path):
    path = tmp_path / "index"
    made = lanes(path, seconds=0.5)
    made.prepare(1)
    program = (
        "import sys, time; from tests.integration.search_writer import *; lane = lanes(sys.argv[1]).open(0); "
        "lane.write([], Entry(3)); lane._put(lane._writer, rows(0)); print(1, flush=True); time.sleep(60)"
    )
    holder = started(path, "-c", program)
    holder.stdout.readline()
    with pytest.raises(SinkError, match=rf"being written by sink 'flow', process {holder.pid} on "):
        made.open(0)
    os.kill(holder.pid, signal.SIGKILL)
    holder.wait()
    lane = made.open(0)
    assert lane.entry == Entry(3)
    lane.write([rows(0)], Entry(4, batch(0)))
    lane.close()
    assert contents(path) == expected(0)


def test_a_reader_in_another_process_follows_commits_and_swaps(tmp_path):
    path = tmp_path / "index"
    made = lanes(path)
    made.prepare(1)
    program = (
        "import sys; from penstock.targets.search import SearchIndex; index = SearchIndex(sys.argv[1])\n"
        "for line in sys.stdin: print(len(index.search('*', 10000)), flush=True)"
    )
    command = [sys.executable, "-c", program, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as reader:

        def seen():
            reader.stdin.write("\n")
            reader.stdin.flush()
            return int(reader.stdout.readline())

        assert seen() == 0
        for number in range(3):
            lane = made.open(0)
            lane.write([rows(number)], Entry(1, batch(number)))
            lane.close()
            assert seen() == len(expected(number))
        target = SearchIndex(path)
        rebuilt = lanes(target.beside("again").path)
        rebuilt.prepare(1)
        lane = rebuilt.open(0)
        lane.write([rows(0)], Entry(1, batch(0)))
        lane.close()
        assert seen() == len(expected(2))
        target.swap(target.beside("again"), None)
        assert seen() == len(expected(0))
        reader.stdin.close()


def test_a_full_disk_leaves_nothing_of_the_batch(tmp_path):
    path = tmp_path / "index"
    made = lanes(path)
    made.prepare(1)
    lane = made.open(0)
    lane.write([rows(0)], Entry(1, batch(0)))
    lane.close()
    writer = started(path, "-c", FULL_DISK)
    said, _ = writer.communicate(timeout=60)
    assert writer.returncode == 0
    assert said.startswith("refused the index did not ")
    assert contents(path) == expected(1)
