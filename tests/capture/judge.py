"""Compares a database with the topics that were captured of it; knows nothing of how that is done."""

import json
from array import array
from collections import Counter
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import islice

import msgspec
import psycopg

from penstock.log.cursor import Cursor
from penstock.settings import Settings

KEYS = {"orders": ("id",), "lines": ("shop", "number"), "visits": ()}


@dataclass(frozen=True)
class Records:
    """All committed records of a topic, as (key, value), each time that they are gone through.

    There may be millions of them: they are read again rather than kept.
    """

    settings: Settings
    topic: str

    def __iter__(self):
        with Cursor(self.topic, self.settings) as cursor:
            cursor.start()
            for each in cursor.read_to(cursor.ends()):
                yield each.key(), msgspec.json.decode(each.value()) if each.value() is not None else None


def columns(dsn, table):
    """The columns that a table has now."""
    with psycopg.connect(dsn) as connection:
        return [each.name for each in connection.execute(f"select * from {table} limit 0").description]


def rebuilt(found, keys, names):
    """The table that the records of its topic make: a newcomer's reading of them."""
    rows, bag = {}, Counter()
    for key, value in found:
        if not keys:
            _count(bag, value)
        elif value is None or value["op"] == "d":
            rows.pop(key, None)
        elif value["op"] == "t":
            rows.clear()
        else:
            rows[key] = value["after"]
    if not keys:
        return bag
    known = ({name: row[name] for name in names if name in row} for row in rows.values())
    return Counter(map(spelled, known))


def _count(bag, value):
    if value["op"] == "t":
        bag.clear()
        return
    if value["before"] is not None:
        bag[spelled(value["before"])] -= 1
    if value["after"] is not None:
        bag[spelled(value["after"])] += 1


def held(dsn, table):
    """The rows that the database has."""
    with psycopg.connect(dsn) as connection:
        found = connection.execute(f"select to_jsonb(t) from {table} t")
        return Counter(spelled(row[0]) for row in found)


def spelled(row):
    """A row with its numbers as text, without columns that are null: those may have come later."""
    known = {name: _plain(value) for name, value in row.items() if value is not None}
    return json.dumps(known, sort_keys=True)


def _plain(value):
    return str(Decimal(str(value)).normalize()) if _is_number(value) else value


def _is_number(value):
    try:
        Decimal(str(value))
    except ArithmeticError:
        return False
    return not isinstance(value, bool)


def changes(found):
    """The changes that a topic tells of, without the rows of snapshots and the parts of truncations."""
    emptied = {_place(v["source"]) for _, v in found if v is not None and v["op"] == "t"}
    for _, value in found:
        if value is None or value["op"] == "r":
            continue
        place = _place(value["source"])
        if value["op"] == "t":
            yield "t", None
        elif value["op"] != "d" or place not in emptied:
            yield value["op"], value["after"] if value["after"] is not None else value["before"]


def _place(source):
    """What the records of one statement have in common."""
    return source["gtid"] if "gtid" in source else (source["lsn"], source["txId"])


def audited(dsn, table, keys):
    """The same by the database's own list; a change of the key is a deletion and an insertion."""
    with psycopg.connect(dsn) as connection, connection.cursor("audited") as cursor:
        cursor.execute("select op, old, new from audit where relation = %s order by number", [table])
        for op, old, new in cursor:
            if op == "u" and keys and any(old[key] != new[key] for key in keys):
                yield "d", {key: old[key] for key in keys}
                yield "c", new
            elif op == "d":
                yield "d", {key: old[key] for key in keys} if keys else old
            else:
                yield {"i": "c"}.get(op, op), new


def differences(settings, dsn, prefix="shop"):
    """What is wrong with the topics: nothing, if the list is empty."""
    wrong = []
    for table, keys in KEYS.items():
        found = Records(settings, f"{prefix}.public.{table}")
        expected, seen = held(dsn, table), +rebuilt(found, keys, columns(dsn, table))
        if expected != seen:
            lacks, has = list((expected - seen).items())[:3], list((seen - expected).items())[:3]
            wrong.append(f"{table}: lacks {lacks}, has {has}")
        wrong += change_differences(table, found, audited(dsn, table, keys), keys)
    return wrong + transaction_differences(settings, prefix)


def change_differences(table, found, known, keys):
    """Where the changes of a topic are not those that the database knows, one by one."""
    seen = _digests(changes(found), keys)
    expected = _digests(known, keys)
    tail = expected[len(expected) - len(seen) :]  # the first ones came before the capture
    if len(seen) <= len(expected) and seen == tail:
        return []
    pairs = enumerate(zip(seen, tail, strict=False))
    place = next((place for place, (one, other) in pairs if one != other), len(tail))
    wrong = next(islice(changes(found), place, None), None)
    return [f"{table}: {len(seen)} changes of {len(expected)}; that of place {place} is wrong: {wrong}"]


def _digests(found, keys):
    """Changes as numbers: millions of rows would not fit into memory."""
    return array("q", (hash(_brief(each, keys)) for each in found))


def transaction_differences(settings, prefix, schema="public"):
    """What the transaction topic has wrong: each begins once, ends once, and its events are as counted."""
    places, begun, ended, wrong = {}, Counter(), {}, []
    for table in KEYS:
        for _, value in Records(settings, f"{prefix}.{schema}.{table}"):
            if value is not None and (place := value["transaction"]) is not None:
                places.setdefault(place["id"], Events()).add(place["total_order"], f"{schema}.{table}")
    for _, value in Records(settings, f"{prefix}.transaction"):
        if value["status"] == "BEGIN":
            begun[value["id"]] += 1
        elif value["id"] in ended:
            wrong.append(f"transaction {value['id']} ends twice")
        else:
            ended[value["id"]] = value
    if begun != Counter(places.keys()) or begun != Counter(ended.keys()):
        wrong.append(f"{len(places)} transactions, {begun.total()} beginnings, {len(ended)} ends")
    for id, found in places.items():
        end = ended.get(id, {"event_count": None, "data_collections": []})
        counts = {each["data_collection"]: each["event_count"] for each in end["data_collections"]}
        if not found.is_dense or end["event_count"] != found.count or counts != found.tables:
            wrong.append(f"transaction {id}: {found.count} events, its end says {end}")
    return wrong


@dataclass(slots=True)
class Events:
    """The events of a transaction: how many, and whether they are numbered from 1 without a gap."""

    count: int = 0
    total: int = 0
    last: int = 0
    tables: Counter = field(default_factory=Counter)

    def add(self, order, table):
        self.count, self.total, self.last = self.count + 1, self.total + order, max(self.last, order)
        self.tables[table] += 1

    @property
    def is_dense(self):
        return self.last == self.count and self.total == self.count * (self.count + 1) // 2


def _brief(change, keys):
    """A change to compare; of a deletion only the key is known, and large values may be left out."""
    op, row = change
    if row is None or (op == "d" and keys):
        return op, None if row is None else spelled({key: row[key] for key in keys})
    return op, spelled({name: value for name, value in row.items() if name != "note"})
