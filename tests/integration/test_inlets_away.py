"""What is lost while a receiver is away: by several direct ways, and in the log, which loses nothing."""

import subprocess
import sys
import time
from pathlib import Path
from threading import Event as Flag
from threading import Thread

import pytest
import zmq
from inlet_readings import numbers_of, readings
from inlet_receiver import WAYS
from inlet_senders import AcknowledgedLines, Datagrams, Events, Lines, ZeroMqMessages

from penstock.local.ports import any_free

EVERY = 0.002  # seconds between two messages of a sender
AWAY = 0.5  # seconds, and as long as it takes to start


class Receiver:
    """A process that receives, and a file with what it has read in the log."""

    def __init__(self, folder, *arguments):
        script = Path(__file__).with_name("inlet_receiver.py")
        self._command = [sys.executable, script, *map(str, arguments)]
        self._report = folder / "report"
        self._report.touch()
        self._starts = 0

    def start(self):
        with self._report.open("ab") as reported:
            self._process = subprocess.Popen(self._command, stdout=reported)
        self._starts += 1
        wait_until(lambda: self._report.read_text().count("ready") == self._starts)

    def kill(self):
        self._process.kill()
        self._process.wait()

    def stop(self):
        self._process.terminate()
        assert self._process.wait(20) == 0

    def read(self):
        return {int(line) for line in self._report.read_text().split("\n")[:-1] if line.isdigit()}


def wait_until(holds, patience=20.0):
    deadline = time.monotonic() + patience
    while not holds():
        assert time.monotonic() < deadline, "it has not come to that"
        time.sleep(0.02)


@pytest.fixture
def senders(settings, unique):
    """A sender for each way, and the ports of the receiver."""
    topics = {way: readings(settings, f"{unique}.{way}") for way in (*WAYS, "log")}
    ports = {way: any_free() for way in WAYS}
    made = {
        "udp": Datagrams(ports["udp"]),
        "tcp": Lines(ports["tcp"]),
        "acknowledged": AcknowledgedLines(ports["acknowledged"]),
        "sub": ZeroMqMessages(zmq.PUB, ports["sub"]),
        "pull": ZeroMqMessages(zmq.PUSH, ports["pull"]),
        "log": Events(settings, topics["log"]),
    }
    return made, ports, topics


class Traffic(Thread):
    """All senders at one pace, from the first number until it is stopped."""

    def __init__(self, senders):
        super().__init__()
        self._senders, self._stopped = senders, Flag()
        self.sent = 0

    def run(self):
        while not self._stopped.is_set():
            for sender in self._senders.values():
                sender.send(self.sent)
            self.sent += 1
            time.sleep(EVERY)

    def stop(self):
        if self._stopped.is_set():
            return
        self._stopped.set()
        self.join()
        wait_until(self._senders["acknowledged"].go_on)
        for sender in self._senders.values():
            sender.close()


@pytest.fixture
def lost(settings, unique, senders, tmp_path):
    """How many of the messages each way has lost, and how many each has sent."""
    made, ports, topics = senders
    receiver = Receiver(tmp_path, settings.kafka["bootstrap.servers"], unique, *ports.values())
    traffic = Traffic(made)
    try:
        receiver.start()
        traffic.start()
        wait_until(lambda: traffic.sent > 300)
        receiver.kill()
        time.sleep(AWAY)
        receiver.start()
        missed = traffic.sent
        wait_until(lambda: traffic.sent > missed + 300)
        traffic.stop()
        wait_until(lambda: traffic.sent - 1 in receiver.read())
        receiver.stop()
    finally:
        traffic.stop()
        receiver.kill()
    got = {way: set(numbers_of(settings, topics[way])) for way in WAYS} | {"log": receiver.read()}
    return {way: traffic.sent - len(numbers) for way, numbers in got.items()}, traffic.sent


def test_what_is_sent_directly_is_lost_while_nobody_receives_and_what_is_in_the_log_is_not(lost):
    losses, sent = lost
    sys.stdout.write(f"lost of {sent:,} messages each: {losses}\n")  # `pytest -s` shows it
    assert losses["log"] == 0
    assert losses["acknowledged"] == 0
    assert losses["udp"] > 100
    assert losses["sub"] > 100
    assert losses["tcp"] > 100
    assert losses["pull"] < losses["udp"], "a PUSH keeps what it has not handed over"
