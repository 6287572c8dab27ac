"""Ways in with real sockets and no log: lines, limits, tokens, counts of what was dropped."""

import resource
import socket
import struct
import time
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
import zmq

from penstock.errors import InletError
from penstock.inlets import Tcp, Udp, ZeroMq
from penstock.settings import Secret


def opened(source):
    return closing(source.open())


def port_of(receiver):
    return int(receiver.address.rpartition(":")[2])


def connected(receiver):
    return socket.create_connection(("127.0.0.1", port_of(receiver)), 5)


def received(receiver, count, patience=5.0):
    """Receive until there are as many messages, or fail."""
    found, until = [], time.monotonic() + patience
    while len(found) < count and time.monotonic() < until:
        found += receiver.receive(0.05)
    return found


def data_of(found):
    return [each.data for each in found]


def test_datagrams_come_in_a_process_with_many_open_files():
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(2_000, before[0]), before[1]))
    with ExitStack() as stack:
        for _ in range(1_100):
            stack.enter_context(Path("/dev/null").open())
        receiver = stack.enter_context(opened(Udp(0)))
        with socket.socket(type=socket.SOCK_DGRAM) as sender:
            sender.sendto(b"hello", ("127.0.0.1", port_of(receiver)))
        assert data_of(received(receiver, 1)) == [b"hello"]
    assert receiver.dropped_by_kernel() is None, "asked when it is closed"
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_a_datagram_is_a_message_with_its_sender():
    with opened(Udp(0)) as receiver, socket.socket(type=socket.SOCK_DGRAM) as sender:
        for number in range(3):
            sender.sendto(b"%d" % number, ("127.0.0.1", port_of(receiver)))
        found = received(receiver, 3)
        assert data_of(found) == [b"0", b"1", b"2"]
        assert found[0].sender == f"udp://127.0.0.1:{sender.getsockname()[1]}"
        assert receiver.dropped_by_kernel() == 0


def test_what_the_kernel_drops_is_counted():
    with opened(Udp(0)) as receiver, socket.socket(type=socket.SOCK_DGRAM) as sender:
        sent = 0
        while receiver.dropped_by_kernel() == 0 and sent < 100_000:
            for _ in range(500):
                sender.sendto(b"x" * 1000, ("127.0.0.1", port_of(receiver)))
                sent += 1
        found = []
        while more := receiver.receive(0):
            found += more
        assert receiver.dropped_by_kernel() > 0
        assert len(found) + receiver.dropped_by_kernel() == sent


def test_lines_come_whole_however_they_are_cut():
    text = b"".join(b"line %d\n" % number for number in range(200))
    with opened(Tcp(0)) as receiver, connected(receiver) as sender:
        found = []
        for at in range(0, len(text), 7):
            sender.sendall(text[at : at + 7])
            found += receiver.receive(0.001)
        found += received(receiver, 200 - len(found))
        assert data_of(found) == text.splitlines()
        assert found[0].sender == f"tcp://127.0.0.1:{sender.getsockname()[1]}"


def test_a_line_that_is_too_long_is_reported_once_with_its_beginning():
    with opened(Tcp(0, longest=10)) as receiver, connected(receiver) as sender:
        sender.sendall(b"a" * 300_000 + b"\nshort\n" + b"b" * 11 + b"\nlast\n")
        found = received(receiver, 4)
    assert [(each.data, each.fault is None) for each in found] == [
        (b"a" * 10, False), (b"short", True), (b"b" * 10, False), (b"last", True)
    ]  # fmt: skip


def test_a_line_that_was_cut_off_is_no_message():
    with opened(Tcp(0)) as receiver:
        with connected(receiver) as sender:
            sender.sendall(b"hall 21.5\nhall 2")
        found = received(receiver, 2)
    assert data_of(found) == [b"hall 21.5", b"hall 2"]
    assert found[1].fault == "the connection ended within the line"


def test_a_connection_that_breaks_leaves_the_others_alone():
    with opened(Tcp(0)) as receiver, connected(receiver) as other:
        with connected(receiver) as sender:
            sender.sendall(b"one\n")
            assert data_of(received(receiver, 1)) == [b"one"]
            sender.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # a reset
        other.sendall(b"two\n")
        assert data_of(received(receiver, 1)) == [b"two"]


def test_there_are_no_more_connections_than_allowed():
    with opened(Tcp(0, connections=1)) as receiver, connected(receiver) as first:
        first.sendall(b"one\n")
        assert data_of(received(receiver, 1)) == [b"one"]
        with connected(receiver) as second:
            receiver.receive(1)
            assert second.recv(1) == b""
        first.sendall(b"two\n")
        assert data_of(received(receiver, 1)) == [b"two"]
        assert receiver.refused == 1


def test_connections_that_never_cease_do_not_keep_it_from_ending(monkeypatch):
    with opened(Tcp(0, connections=3)) as receiver:
        listener, endless = receiver._listener, Endless()
        monkeypatch.setattr(receiver, "_listener", endless)
        monkeypatch.setattr(receiver._selector, "unregister", lambda _: None)
        receiver.stop_listening()
        listener.close()
        assert endless.accepted - receiver.refused == 3
        assert endless.accepted < 1000


class Endless:
    """A listener that always has one more."""

    accepted = 0

    def accept(self):
        self.accepted += 1
        assert self.accepted < 1000, "it goes on for ever"
        made, other = socket.socketpair()
        other.close()
        return made, ("127.0.0.1", self.accepted)

    def close(self):
        pass


def test_a_token_is_the_first_line():
    with (
        opened(Tcp(0, token=Secret("s3"))) as receiver,
        connected(receiver) as good,
        connected(receiver) as bad,
        connected(receiver) as long,
    ):
        good.sendall(b"s3\r\nhello\n")
        bad.sendall(b"s4\nhello\nhello\n")
        long.sendall(b"s" * 100_000)
        assert data_of(received(receiver, 1)) == [b"hello"]
        until = time.monotonic() + 5
        while receiver.refused < 2 and time.monotonic() < until:
            assert receiver.receive(0.05) == []
        assert receiver.refused == 2
        good.sendall(b"again\n")
        assert data_of(received(receiver, 1)) == [b"again"]


def test_a_sender_that_does_not_bring_its_token_in_time_is_refused(monkeypatch):
    monkeypatch.setattr("penstock.inlets.connection._PATIENCE", 0.1)
    with opened(Tcp(0, token=Secret("s3"))) as receiver, connected(receiver) as sender:
        received(receiver, 1, patience=0.3)
        assert sender.recv(1) == b""
        assert receiver.refused == 1


def test_lines_are_acknowledged_by_their_number():
    with opened(Tcp(0, acknowledge=True)) as receiver, connected(receiver) as sender:
        sender.sendall(b"one\n\ntwo\nthr")
        received(receiver, 3)
        receiver.acknowledge()
        assert sender.recv(100) == b"3\n"
        sender.sendall(b"ee\n")
        sender.shutdown(socket.SHUT_WR)
        assert data_of(received(receiver, 1)) == [b"three"]
        receiver.receive(0.1)
        receiver.acknowledge()
        assert sender.recv(100) == b"4\n"
        assert sender.recv(100) == b"", "who has said all, and was answered, is let go"


def test_a_sender_that_never_reads_its_replies_costs_nothing():
    with opened(Tcp(0, acknowledge=True)) as receiver, connected(receiver) as sender:
        sender.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        for _ in range(20_000):
            sender.sendall(b"x\n")
            receiver.receive(0)
            receiver.acknowledge()
        replies = b""
        while not replies.endswith(b"\n20000\n"):
            receiver.receive(0)
            receiver.acknowledge()
            replies += sender.recv(65536)
        numbers = [int(each) for each in replies.split()]
        assert numbers == sorted(set(numbers)), "no reply is cut, none comes late"


@pytest.mark.parametrize("source", [Udp, Tcp])
def test_an_address_that_is_taken_is_refused(source):
    with opened(source(0)) as receiver, pytest.raises(InletError, match="in use"):
        source(port_of(receiver)).open()


@pytest.mark.parametrize("make", [
    lambda **how: Udp(0, "0.0.0.0", **how),
    lambda **how: Tcp(0, "::", **how),
    lambda **how: ZeroMq("pull", bind="tcp://*:5557", **how),
    lambda **how: ZeroMq("sub", bind="tcp://eth0:5557", **how),
])  # fmt: skip
def test_strangers_are_let_in_only_on_request(make):
    with pytest.raises(InletError, match="anybody who reaches it can write"):
        make()
    assert make(anyone=True).anyone


def test_a_token_is_a_reason_to_listen_to_others():
    assert Tcp(0, "0.0.0.0", token=Secret("s3")).host == "0.0.0.0"
    with pytest.raises(InletError, match="token is empty"):
        Tcp(0, "0.0.0.0", token=Secret(" "))
    assert "s3" not in repr(Tcp(0, token=Secret("s3")))


@pytest.mark.parametrize("make", [
    lambda: Udp(70_000),
    lambda: Tcp(0, longest=0),
    lambda: Tcp(0, longest=10_000_000),
    lambda: Tcp(0, connections=0),
    lambda: ZeroMq("pub", bind="tcp://127.0.0.1:1"),
    lambda: ZeroMq("pull"),
    lambda: ZeroMq("pull", bind="tcp://127.0.0.1:1", connect="tcp://127.0.0.1:2"),
    lambda: ZeroMq("pull", bind="inproc://x"),
    lambda: ZeroMq("pull", bind="tcp://127.0.0.1:1", prefix="x"),
])  # fmt: skip
def test_a_source_is_checked_when_it_is_declared(make):
    with pytest.raises(InletError):
        make()


@pytest.fixture
def context():
    with zmq.Context() as made:
        yield made


def socket_of(context, kind, receiver):
    made = context.socket(kind)
    made.setsockopt(zmq.LINGER, 0)
    made.connect(receiver.address)
    return made


def test_a_push_is_pulled(context):
    with (
        opened(ZeroMq("pull", bind="tcp://127.0.0.1:*", longest=10)) as receiver,
        socket_of(context, zmq.PUSH, receiver) as sender,
    ):
        sender.send(b"one")
        sender.send_multipart([b"envelope", b"two"])
        sender.send_multipart([b"a", b"b", b"three"])
        sender.send(b"x" * 11)
        found = received(receiver, 4)
    assert data_of(found) == [b"one", b"two", b"three", b"x" * 10]
    assert [each.fault is None for each in found] == [True, True, False, False]
    assert found[0].sender == f"pull {receiver.address} from 127.0.0.1"
    assert receiver.is_patient


def test_a_subscriber_gets_what_it_selects(context):
    with context.socket(zmq.PUB) as publisher:
        publisher.setsockopt(zmq.LINGER, 0)
        port = publisher.bind_to_random_port("tcp://127.0.0.1")
        with opened(ZeroMq("sub", connect=f"tcp://127.0.0.1:{port}", prefix="weather")) as receiver:
            found, until = [], time.monotonic() + 5
            while not found and time.monotonic() < until:
                publisher.send_multipart([b"news", b"no"])
                publisher.send_multipart([b"weather.eu", b"yes"])
                found = receiver.receive(0.05)
            assert set(data_of(found)) == {b"yes"}
            assert not receiver.is_patient


def test_an_address_of_zeromq_that_is_taken_is_refused():
    with (
        opened(ZeroMq("pull", bind="tcp://127.0.0.1:*")) as receiver,
        pytest.raises(InletError, match="in use"),
    ):
        ZeroMq("pull", bind=receiver.address).open()
