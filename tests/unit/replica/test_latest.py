"""A batch is reduced to what it leaves behind."""

import json

from penstock.replica.latest import Latest


class Message:
    def __init__(self, key, op=None, after=None, lsn=1):
        self._key = json.dumps(key, separators=(",", ":")).encode()
        value = {"op": op, "after": after, "source": {"lsn": lsn, "ts_us": lsn}}
        self._value = None if op is None else json.dumps(value).encode()

    def key(self):
        return self._key

    def value(self):
        return self._value


def reduced(*messages):
    found = Latest.of(messages)
    rows = {
        key: ({name: json.loads(bytes(value)) for name, value in row.items()}, lsn)
        for key, (row, lsn) in found.rows.items()
    }
    return rows, found.gone


def test_the_last_of_each_key_counts():
    rows, gone = reduced(
        Message({"id": 1}, "c", {"id": 1, "n": 1}),
        Message({"id": 1}, "u", {"id": 1, "n": 2}, lsn=5),
        Message({"id": 2}, "c", {"id": 2, "n": 1}),
        Message({"id": 2}, "d"),
        Message({"id": 2}),
        Message({"__op": "t"}, "t"),
    )
    assert rows == {b'{"id":1}': ({"id": 1, "n": 2}, 5)}
    assert gone == {b'{"id":2}'}


def test_what_a_record_lacks_is_taken_from_the_one_before_but_not_through_a_deletion():
    whole, part = {"id": 1, "big": "x", "n": 1}, {"id": 1, "n": 2}
    rows, _ = reduced(Message({"id": 1}, "c", whole), Message({"id": 1}, "u", part))
    assert rows[b'{"id":1}'][0] == {"id": 1, "big": "x", "n": 2}
    rows, gone = reduced(Message({"id": 1}, "c", whole), Message({"id": 1}), Message({"id": 1}, "c", part))
    assert rows[b'{"id":1}'][0] == part
    assert gone == {b'{"id":1}'}
