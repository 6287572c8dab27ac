"""Inlets on a real broker: events, dead letters, backpressure, limits, and an end that loses nothing."""

import os
import signal
import socket
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from threading import Thread

import pytest
import zmq
from inlet_readings import Reading, events_of, letters_of, numbers_of, readings, running

from penstock.errors import DeliveryError, LogError, TopicError
from penstock.inlets import Inlet, Messages, Tcp, Udp, ZeroMq, redrive
from penstock.inlets.intake import Intake
from penstock.inlets.receiver import Incoming
from penstock.log import Broker, DeadLetter, DeadLetters, Topic, apply
from penstock.registry import Registry

NARROW = {"queue_buffering_max_messages": "100"}


def address_of(inlet):
    return "127.0.0.1", int(inlet.address.rpartition(":")[2])


def connected(inlet):
    return socket.create_connection(address_of(inlet), 10)


def until(holds, patience=10.0):
    deadline = time.monotonic() + patience
    while not holds():
        assert time.monotonic() < deadline, "it has not come to that"
        time.sleep(0.02)


@pytest.fixture
def topic(settings, unique):
    return readings(settings, unique)


def test_datagrams_are_events_and_what_is_malformed_a_dead_letter_with_its_sender(settings, topic):
    began = datetime.now(UTC)
    with (
        running(Udp(0), topic, settings) as (inlet, ended),
        socket.socket(type=socket.SOCK_DGRAM) as sender,
    ):
        for line in (b"hall 1", b"hall 2\n", b"hall warm", b"\n", b"\xff\xfe"):
            sender.sendto(line, address_of(inlet))
        place = f"udp://127.0.0.1:{sender.getsockname()[1]}"
        until(lambda: inlet.counts.received == 4)
    (counts,) = ended
    assert (counts.received, counts.sent, counts.dead, counts.dropped, counts.waiting) == (4, 2, 2, 0, 0)
    found = events_of(settings, topic)
    assert [event.number for event in found] == [1, 2]
    assert all(began <= event.at <= datetime.now(UTC) for event in found)
    letters = letters_of(settings, topic)
    assert [letter.value for letter in letters] == [b"hall warm", b"\xff\xfe"]
    assert "Expected `int`" in letters[0].error
    assert dict(letters[0].headers) == {"penstock.inlet.sender": place.encode()}


def test_lines_are_in_the_log_when_they_are_acknowledged(settings, topic):
    with running(Tcp(0, acknowledge=True), topic, settings) as (inlet, _), connected(inlet) as sender:
        sender.sendall(b"".join(b"hall %d\n" % number for number in range(1000)) + b"nonsense\n")
        replies = b""
        while not replies.endswith(b"1001\n"):
            replies += sender.recv(1000)
        assert numbers_of(settings, topic) == list(range(1000))
        assert [letter.value for letter in letters_of(settings, topic)] == [b"nonsense"]


def test_what_was_received_is_in_the_log_after_the_end(settings, topic):
    with running(Tcp(0), topic, settings) as (inlet, ended), connected(inlet) as sender:
        sender.sendall(b"".join(b"hall %d\n" % number for number in range(5000)) + b"hall 500")
        inlet.stop()
        until(lambda: ended)
    assert ended[0].sent == 5000
    assert sorted(numbers_of(settings, topic)) == list(range(5000))
    (cut,) = letters_of(settings, topic)
    assert (cut.value, cut.error) == (b"hall 500", "the connection ended within the line")


def test_a_sender_by_tcp_waits_while_the_log_has_no_room_and_nothing_is_lost(settings, topic):
    slow = settings.with_kafka(**NARROW, linger_ms="500")  # a batch that is not full waits as long
    lines = [b"hall %d %s\n" % (number, b"x" * 5000) for number in range(400)]
    sent = []

    def send(inlet):
        with connected(inlet) as sender:
            sender.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 16_384)
            for line in lines:
                sender.sendall(line)
                sent.append(line)

    with running(Tcp(0), topic, slow, line="{sensor} {number} {id}") as (inlet, ended):
        thread = Thread(target=send, args=(inlet,))
        thread.start()
        lead = 0
        while thread.is_alive():
            lead = max(lead, len(sent) - inlet.counts.sent)
            time.sleep(0.005)
        until(lambda: inlet.counts.sent == 400)
        assert 0 < lead < 200, "what the sender is ahead is in the system's buffers, which are bounded"
    assert (ended[0].sent, ended[0].dropped) == (400, 0)
    assert sorted(numbers_of(settings, topic)) == list(range(400))


def test_datagrams_are_dropped_and_counted_while_the_log_has_no_room(settings, topic):
    slow = settings.with_kafka(**NARROW, linger_ms="1000")
    with (
        running(Udp(0), topic, slow) as (inlet, ended),
        socket.socket(type=socket.SOCK_DGRAM) as sender,
    ):
        for number in range(500):
            sender.sendto(b"hall %d" % number, address_of(inlet))
        until(lambda: inlet.counts.received + inlet.counts.dropped_by_kernel == 500)
    (counts,) = ended
    assert counts.sent == 100
    assert counts.dropped + counts.dropped_by_kernel == 400
    assert numbers_of(settings, topic) == list(range(100))


@pytest.mark.parametrize("pattern", ["pull", "sub"])
def test_messages_of_zeromq_are_events(settings, topic, pattern):
    kind = {"pull": zmq.PUSH, "sub": zmq.PUB}[pattern]
    with (
        zmq.Context() as context,
        context.socket(kind) as sender,
        running(ZeroMq(pattern, bind="tcp://127.0.0.1:*"), topic, settings) as (inlet, ended),
    ):
        sender.setsockopt(zmq.LINGER, 0)
        sender.connect(inlet.address)
        time.sleep(0.3)  # a subscription takes a moment to reach its publisher
        for number in range(200):
            sender.send(b"hall %d" % number)
        sender.send(b"nonsense")
        until(lambda: inlet.counts.received == 201)
    assert (ended[0].sent, ended[0].dead) == (200, 1)
    assert sorted(numbers_of(settings, topic)) == list(range(200))
    assert dict(letters_of(settings, topic)[0].headers)["penstock.inlet.sender"].startswith(pattern.encode())


def test_a_push_waits_while_the_log_has_no_room(settings, topic):
    slow = settings.with_kafka(**NARROW, linger_ms="500")
    with (
        zmq.Context() as context,
        context.socket(zmq.PUSH) as sender,
        running(ZeroMq("pull", bind="tcp://127.0.0.1:*"), topic, slow) as (inlet, ended),
    ):
        sender.setsockopt(zmq.SNDHWM, 10)
        sender.connect(inlet.address)
        for number in range(300):
            sender.send(b"hall %d" % number)
        until(lambda: inlet.counts.waiting == 100)
        until(lambda: inlet.counts.sent == 300, patience=30)
    assert ended[0].dropped == 0
    assert sorted(numbers_of(settings, topic)) == list(range(300))


def test_events_of_a_registered_format_name_their_schema(settings, unique):
    topic = Topic(unique, Reading, key="sensor", format="avro")
    apply([topic], Broker(settings))
    with Registry(settings) as registry:
        with (
            running(Udp(0), topic, settings, schemas=registry) as (inlet, _),
            socket.socket(type=socket.SOCK_DGRAM) as sender,
        ):
            sender.sendto(b"hall 7", address_of(inlet))
            until(lambda: inlet.counts.sent == 1)
        ((_, end), *_) = Broker(settings).offsets(topic.name).values()
        assert end == 1
        assert topic.subject in registry.subjects()


def test_a_topic_that_is_not_there_is_refused_before_anything_is_received(settings, unique):
    with pytest.raises(TopicError, match="does not exist"):
        Inlet(Udp(0), Messages(Topic(unique, Reading)), settings)


def test_what_the_broker_refuses_is_a_dead_letter_with_its_key(settings, unique):
    topic = Topic(unique, Reading, key="sensor", settings={"max.message.bytes": "2000"})
    apply([topic], Broker(settings))
    with (
        running(Tcp(0, acknowledge=True), topic, settings, line="{sensor} {number} {id}") as (inlet, ended),
        connected(inlet) as sender,
    ):
        for number, name in enumerate((b"a", os.urandom(5000).hex().encode(), b"c"), start=1):
            sender.sendall(b"hall %d %s\n" % (number, name))
            while not sender.recv(1000).endswith(b"%d\n" % number):
                pass
    assert (ended[0].sent, ended[0].dead) == (2, 1)
    assert numbers_of(settings, topic) == [1, 3]
    (letter,) = letters_of(settings, topic)
    assert letter.key == b"hall"
    assert topic.codec().decode(letter.value).number == 2


def test_a_malformed_message_after_a_refused_event_ends_nothing(settings, unique):
    topic = Topic(unique, Reading, key="sensor", settings={"max.message.bytes": "2000"})
    apply([topic], Broker(settings))
    intake, now = Intake(Messages(topic, "{sensor} {number} {id}", "at"), settings), datetime.now(UTC)
    assert intake.take(Incoming(b"hall 1 " + os.urandom(5000).hex().encode(), "test"), now)
    while intake.waiting:
        intake.wait(0.1)
    assert intake.take(Incoming(b"nonsense", "test"), now)
    assert intake.flush(10)
    assert (intake.sent, intake.dead) == (0, 2)
    assert {letter.key for letter in letters_of(settings, topic)} == {b"hall", None}


def test_an_error_ends_an_inlet_when_the_rest_is_in_the_log(settings, topic, monkeypatch):
    take = Intake.take

    def broken(self, message, now):
        if message.data == b"hall 50":
            raise LogError("the broker is not to be had")
        return take(self, message, now)

    monkeypatch.setattr(Intake, "take", broken)
    slow = settings.with_kafka(linger_ms="30000")  # what is in the log sooner was flushed
    with running(Tcp(0), topic, slow) as (inlet, ended), connected(inlet) as sender:
        sender.sendall(b"".join(b"hall %d\n" % number for number in range(60)))
        until(lambda: ended)
        assert sorted(numbers_of(settings, topic)) == list(range(50))
    (error,) = ended
    assert isinstance(error, LogError)
    assert error.__notes__[0].startswith("10 messages are not in the log")


def test_only_messages_of_an_inlet_are_read_again(settings, topic):
    """A letter of a consumer holds an event, and so does one of what the broker refused."""
    whole = topic.codec().encode(Reading("hall", 1, datetime.now(UTC)))
    sender, now = ("penstock.inlet.sender", b"tcp://127.0.0.1:4711"), datetime.now(UTC)
    letters = [
        DeadLetter(topic.name, 0, 5, "delivered 6 times", now, b"hall", whole),
        DeadLetter(topic.name, 1, 7, "delivered 6 times", now, b"hall", whole, (sender,)),
        DeadLetter(topic.name, -1, -1, "too large", now, b"hall", whole),
        DeadLetter(topic.name, -1, -1, "malformed", now, None, b"hall,9", (sender,)),
    ]
    dead = DeadLetters(settings)
    for letter in letters:
        dead.send(letter)
    dead.flush()
    done = redrive(Messages(topic, "{sensor},{number}", "at"), settings)
    assert (done.sent, done.still_dead) == (1, 3)
    assert numbers_of(settings, topic) == [9]
    left = letters_of(settings, topic)[4:]
    assert [(each.origin, each.error, each.value) for each in left] == [
        (each.origin, each.error, whole) for each in letters[:3]
    ]


def test_letters_are_read_again_once_the_cause_is_mended(settings, topic):
    with running(Tcp(0), topic, settings, line="{sensor};{number}") as (inlet, _):
        with connected(inlet) as sender:
            sender.sendall(b"hall 1\nhall warm\nhall 2")
        until(lambda: inlet.counts.dead == 3)
    died = letters_of(settings, topic)[0].at
    done = redrive(Messages(topic, "{sensor} {number}", "at"), settings)
    assert (done.sent, done.still_dead) == (1, 2)
    (event,) = events_of(settings, topic)
    assert (event.number, event.at) == (1, died), "what was cut off is no event, however it looks"


def test_an_end_without_a_log_says_what_is_lost(settings, topic):
    stuck = settings.with_kafka(linger_ms="60000", max_in_flight="1")
    with running(Udp(0), topic, stuck, grace="1 second") as (inlet, ended):
        with socket.socket(type=socket.SOCK_DGRAM) as sender:
            sender.sendto(b"hall 1", address_of(inlet))
        until(lambda: inlet.counts.sent == 1)
        inlet._intake._producer.flush = _out_of_reach
    (error,) = ended
    assert isinstance(error, DeliveryError)
    assert "did not take 1 messages in time" in error.message


def _out_of_reach(timeout):
    raise DeliveryError("no answer")


DECLARED = """
from dataclasses import dataclass
from datetime import datetime
from penstock.events import Event
from penstock.log import Topic

@dataclass(frozen=True)
class Reading(Event):
    sensor: str
    number: int
    at: datetime

readings = Topic("{name}", Reading, key="sensor", partitions=2)
"""


def test_the_command_ends_in_order_at_sigterm(settings, topic, tmp_path):
    (tmp_path / "house.py").write_text(DECLARED.replace("{name}", topic.name))
    command = [Path(sys.executable).parent / "penstock", "inlet", "tcp", topic.name, "--port", "0"]
    command += ["--line", "{sensor} {number}", "--received-at", "at", "-m", "house.py"]
    environment = os.environ | settings.environment() | {"PENSTOCK_INLET_TOKEN": "s3"}
    process = subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True)
    assert "sent in the clear" in process.stdout.readline()
    first = process.stdout.readline()
    port = int(first.split(" ")[0].rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port), 5) as sender:
        sender.sendall(b"s3\n" + b"".join(b"hall %d\n" % number for number in range(3000)))
        time.sleep(0.5)
        process.send_signal(signal.SIGTERM)
        rest, _ = process.communicate(timeout=20)
    assert (process.returncode, rest) == (
        0,
        "ended: 3,000 received: 3,000 events, 0 dead letters, 0 dropped, 0 dropped by the kernel\n",
    )
    assert sorted(numbers_of(settings, topic)) == list(range(3000))
