"""Every type of MariaDB, to the last digit: the same in the snapshot as in the stream, in each format."""

import pytest
from tests.capture.mariadb_types import TYPES

PLACES = [(type, place) for type, values in TYPES.items() for place in range(len(values))]


def columns():
    """A table with a column for each value that is to be written."""
    return {f"c{number}": TYPES[type][place] for number, (type, place) in enumerate(PLACES)}


def declared():
    return ", ".join(f"c{number} {type}" for number, (type, _) in enumerate(PLACES))


def statement(id):
    given = {name: literal for name, (literal, _) in columns().items() if literal is not None}
    return f"insert into t (id, {', '.join(given)}) values ({id}, {', '.join(given.values())})"


def prepare(maria):
    maria.execute("set sql_mode = '', time_zone = '+05:30'")
    maria.execute(f"create table t (id int primary key, {declared()}) row_format = dynamic")
    maria.execute(statement(1))
    maria.execute("insert into t (id) values (2)")


def test_values_are_the_same_in_snapshot_and_stream(maria):
    maria.execute("set time_zone = '+00:00'")
    prepare(maria)
    maria.execute("set time_zone = '+00:00'")
    maria.execute("delete from t")
    maria.execute(statement(1))
    maria.execute("insert into t (id) values (2)")
    capture = maria.capture("t")
    with maria.running(capture):
        maria.execute(statement(3))
        maria.execute("insert into t (id) values (4)")
    found = maria.records(capture, "t")
    seen = {each.after["id"]: each.after for each in found}
    wrong = []
    for name, (literal, expected) in columns().items():
        read, streamed = seen[1][name], seen[3][name]
        if literal is not None and (repr(read) != repr(expected) or repr(streamed) != repr(expected)):
            wrong.append((name, literal, expected, read, streamed))
    assert wrong == []
    generated = [name for name, (literal, _) in columns().items() if literal is None]
    assert [seen[1][name] for name in generated] == [2, 3]
    assert [seen[3][name] for name in generated] == [4, 5]
    assert {name: seen[2][name] for name in seen[2] if name not in ("id", *generated)} == {
        name: seen[4][name] for name in seen[4] if name not in ("id", *generated)
    }


@pytest.mark.parametrize("decimals", ["string", "precise", "double"])
def test_avro_takes_every_type(maria, decimals):
    prepare(maria)
    capture = maria.capture("t", format="debezium-avro", decimals=decimals)
    with maria.running(capture):
        maria.execute(statement(3))
    assert len(maria.records(capture, "t")) == 3


def test_keys_of_many_types_are_read_in_chunks(maria):
    kinds = {
        "a": ("bigint unsigned", lambda n: 18446744073709551615 - n),
        "b": ("varchar(30) character set latin1", lambda n: f"'é{n % 7}\\\\'"),
        "c": ("varbinary(9)", lambda n: f"x'{n:04x}ff'"),
        "d": ("datetime(3)", lambda n: f"'2026-01-02 03:04:05.{n:03d}'"),
        "e": ("timestamp(2) null", lambda n: f"'2026-01-02 03:04:{n % 50:02d}.12'"),
        "f": ("decimal(20,5)", lambda n: f"-{n}.00001"),
        "g": ("enum('z','y','x')", lambda n: f"'{'zyx'[n % 3]}'"),
        "h": ("date", lambda n: f"'2026-01-{n % 28 + 1:02d}'"),
    }
    tables = []
    for name, (type, make) in kinds.items():
        rest = ", n int, primary key (k, n)"
        maria.execute(f"create table {name} (k {type} not null{rest})")
        listed = ", ".join(f"({make(number)}, {number})" for number in range(1, 60))
        maria.execute(f"insert into {name} values {listed}")
        tables.append(name)
    capture = maria.capture(*tables)
    with maria.running(capture, chunk=7):
        pass
    for name in tables:
        found = maria.records(capture, name)
        assert sorted(each.after["n"] for each in found) == [*range(1, 60)], name
        assert len({str(each.key) for each in found}) == 59
