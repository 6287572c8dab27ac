"""What a search finds, on a log that needs no broker; the latest events are the latest that match."""

from types import SimpleNamespace

import pytest

from penstock.console import search as searching
from penstock.console.search import MOST, Search, search
from penstock.settings import Settings

NOWHERE = Settings(kafka={"bootstrap.servers": "127.0.0.1:1"})


class Message:
    def __init__(self, partition, offset, key, at):
        self._found = {"partition": partition, "offset": offset, "key": key, "timestamp": (1, at)}

    def __getattr__(self, name):
        return lambda: self._found[name]


class Log:
    """A cursor over partitions in memory: `records` has their messages, `first` where they begin."""

    def __init__(self, *partitions, first=0):
        self.records, self.first, self.position = partitions, first, {}
        self.reads = 0

    def __call__(self, *_, **more):
        return self

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def beginnings(self):
        return dict.fromkeys(range(len(self.records)), self.first)

    def ends(self):
        return {number: each[-1].offset() + 1 for number, each in enumerate(self.records)}

    def go_to(self, offsets):
        self.position = dict(offsets)

    def read(self, size, wait):
        self.reads += 1
        found = []
        for number, at in self.position.items():
            some = [each for each in self.records[number] if each.offset() >= at][
                : size // len(self.position)
            ]
            self.position[number] = some[-1].offset() + 1 if some else self.ends()[number]
            found += some
        return found


def partition(number, count, key=lambda _: b"other", every=1):
    """Records of which every one is a second older than the next; `every` leaves offsets out."""
    return [Message(number, n * every, key(n), 1_000 * n) for n in range(count)]


@pytest.fixture
def searched(monkeypatch):
    """Searches a log; the documents that are found, and the document that the page is given."""

    def run(log, **asked):
        monkeypatch.setattr(searching, "Cursor", log)
        found = search(Search.of("orders", asked), NOWHERE, decoded)
        return [(each["partition"], each["offset"]) for each in found.events], found.document

    return run


def decoded(message):
    place = {"partition": message.partition(), "offset": message.offset()}
    return {**place, "written": message.timestamp()[1], "value": message.key().decode()}


def wanted(*numbers):
    return lambda n: b"wanted" if n in numbers else b"other"


def test_the_latest_are_the_last_ones_of_all_partitions(searched):
    places, found = searched(Log(partition(0, 300), partition(1, 200)), limit="3")
    assert places == [(0, 299), (0, 298), (0, 297)]
    assert found["incomplete"] is False
    assert found["next"] is None


@pytest.mark.parametrize("asked", [{"key": "wanted"}, {"text": "WANTED"}])
def test_the_latest_of_a_key_or_a_text_are_its_newest(searched, asked):
    many = Log(partition(0, 5_000, lambda _: b"wanted"), partition(1, 9_000, wanted(8_990, 8_995, 17)))
    places, found = searched(many, limit="4", **asked)
    assert places == [(1, 8_995), (1, 8_990), (0, 4_999), (0, 4_998)]
    assert found["incomplete"] is False


def test_more_matches_than_can_be_shown_leave_none_of_the_newest_out(searched):
    log = Log(partition(0, 3 * MOST, lambda _: b"wanted"))
    places, found = searched(log, limit="2", key="wanted")
    assert places == [(0, 1_499), (0, 1_498)]
    assert found["scanned"] == 2


def test_the_only_match_is_found_at_the_beginning(searched):
    places, found = searched(Log(partition(0, 20_000, wanted(0)), partition(1, 5)), key="wanted")
    assert (places, found["scanned"], found["incomplete"]) == ([(0, 0)], 20_005, False)


def test_offsets_without_records_are_passed(searched):
    places, _ = searched(Log(partition(0, 40, every=25)), limit="30")
    assert places == [(0, 25 * n) for n in reversed(range(10, 40))]


def test_a_search_reads_so_many_records_and_says_what_it_lacks(searched, monkeypatch):
    monkeypatch.setattr(searching, "_SCANNED", 1_000)
    log = Log(partition(0, 5_000, wanted(3, 4_500)), partition(1, 5_000))
    places, found = searched(log, limit="10", key="wanted")
    assert (places, found["incomplete"]) == ([(0, 4_500)], True)
    assert 1_000 <= found["scanned"] <= 1_010
    whole = Log(partition(0, 1_000, wanted(3)))
    assert searched(whole, limit="10", key="wanted") == (
        [(0, 3)],
        {"events": [decoded(whole.records[0][3])], "scanned": 1_000, "next": None, "incomplete": False},
    )


def test_a_search_that_has_no_time_left_has_the_newest_and_says_so(searched, monkeypatch):
    log = Log(partition(0, 50_000, wanted(5, 49_990)))
    clock = SimpleNamespace(monotonic=lambda: float(log.reads))  # each read takes a second
    monkeypatch.setattr(searching, "time", clock)
    places, found = searched(log, limit="10", key="wanted")
    assert (places, found["incomplete"]) == ([(0, 49_990)], True)
    assert found["scanned"] < 2_500


def test_from_a_place_on_the_first_ones_are_found_and_it_is_said_where_to_go_on(searched):
    log = Log(partition(0, 100, wanted(3, 50, 99)), first=2)
    places, found = searched(log, limit="2", key="wanted", **{"from": "0:0"})
    assert (places, found["next"], found["incomplete"]) == ([(0, 3), (0, 50)], "0:51", False)
    places, found = searched(log, limit="2", key="wanted", **{"from": found["next"]})
    assert (places, found["next"]) == ([(0, 99)], None)


def test_the_newest_come_first_whatever_their_times_look_like(searched):
    odd = [Message(0, n, b"x", at) for n, at in enumerate([5, 1_800_000_000_000_000, -1, 7])]
    places, found = searched(Log(odd))
    assert places == [(0, 1), (0, 3), (0, 0), (0, 2)]
    assert len(found["events"]) == 4
