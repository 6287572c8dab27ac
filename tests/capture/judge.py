"""Compares a database with the topics that were captured of it; knows nothing of how that is done."""

import json
from collections import Counter
from decimal import Decimal

import psycopg

from penstock.log.cursor import Cursor

KEYS = {"orders": ("id",), "lines": ("shop", "number"), "visits": ()}


def records(settings, topic):
    """All committed records of a topic, as (key, value)."""
    with Cursor(topic, settings) as cursor:
        cursor.start()
        return [
            (each.key(), json.loads(each.value()) if each.value() is not None else None)
            for each in cursor.read_to(cursor.ends())
        ]


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
    told = []
    for _, value in found:
        if value is None or value["op"] == "r":
            continue
        place = _place(value["source"])
        if value["op"] == "t":
            told.append(("t", None))
        elif value["op"] != "d" or place not in emptied:
            row = value["after"] if value["after"] is not None else value["before"]
            told.append((value["op"], row))
    return told


def _place(source):
    """What the records of one statement have in common."""
    return source["gtid"] if "gtid" in source else (source["lsn"], source["txId"])


def audited(dsn, table, keys):
    """The same by the database's own list; a change of the key is a deletion and an insertion."""
    with psycopg.connect(dsn) as connection:
        found = connection.execute(
            "select op, old, new from audit where relation = %s order by number", [table]
        ).fetchall()
    told = []
    for op, old, new in found:
        if op == "u" and keys and any(old[key] != new[key] for key in keys):
            told += [("d", {key: old[key] for key in keys}), ("c", new)]
        elif op == "d":
            told.append(("d", {key: old[key] for key in keys} if keys else old))
        else:
            told.append(({"i": "c"}.get(op, op), new))
    return told


def differences(settings, dsn, prefix="shop"):
    """What is wrong with the topics: nothing, if the list is empty."""
    wrong = []
    for table, keys in KEYS.items():
        found = records(settings, f"{prefix}.public.{table}")
        expected, seen = held(dsn, table), +rebuilt(found, keys, columns(dsn, table))
        if expected != seen:
            lacks, has = list((expected - seen).items())[:3], list((seen - expected).items())[:3]
            wrong.append(f"{table}: lacks {lacks}, has {has}")
        wrong += change_differences(table, found, audited(dsn, table, keys), keys)
    return wrong + transaction_differences(settings, prefix)


def change_differences(table, found, known, keys):
    """Where the changes of a topic are not those that the database knows, one by one."""
    told = changes(found)
    tail = known[len(known) - len(told) :]
    if len(told) <= len(known) and [_brief(each, keys) for each in told] == [
        _brief(each, keys) for each in tail
    ]:
        return []
    return [f"{table}: {_first_difference(told, tail, keys)}"]


def transaction_differences(settings, prefix, schema="public"):
    """What the transaction topic has wrong: each begins once, ends once, and its events are as counted."""
    places, begun, ended, wrong = {}, Counter(), {}, []
    for table in KEYS:
        for _, value in records(settings, f"{prefix}.{schema}.{table}"):
            if value is not None and (place := value["transaction"]) is not None:
                places.setdefault(place["id"], []).append((place["total_order"], f"{schema}.{table}"))
    for _, value in records(settings, f"{prefix}.transaction"):
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
        if sorted(order for order, _ in found) != [*range(1, len(found) + 1)] or (
            end["event_count"] != len(found) or counts != Counter(table for _, table in found)
        ):
            wrong.append(f"transaction {id}: {len(found)} events, its end says {end}")
    return wrong


def _brief(change, keys):
    """A change to compare; of a deletion only the key is known, and large values may be left out."""
    op, row = change
    if row is None or (op == "d" and keys):
        return op, None if row is None else spelled({key: row[key] for key in keys})
    return op, spelled({name: value for name, value in row.items() if name != "note"})


def _first_difference(told, known, keys):
    for place, (one, other) in enumerate(zip(told, known, strict=False)):
        if _brief(one, keys) != _brief(other, keys):
            return f"change {place} of {len(told)} is {one}, the database says {other}"
    return f"{len(told)} changes, the database knows {len(known)}"
