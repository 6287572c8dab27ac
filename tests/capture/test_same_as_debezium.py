"""The real Debezium beside our capture: the same statements, and the same records but for what is listed."""

import re

import psycopg
import pytest

from penstock.capture import Store
from penstock.settings import reveal
from tests.capture.running import Database, records
from tests.capture.scenario import Scenario
from tests.connect.debezium import Debezium
from tests.connect.written import read_until

# As text, as bytes, and in an array of numbers.
PLACEHOLDER = re.compile(
    r"__debezium_unavailable_value|X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ==|\[95, 95, 100, 101, 98, 101, 122"
)
SCENARIOS = (
    "keys",
    "key_updates",
    "identities",
    "transactions",
    "partitions",
    "toast",
    "columns_change",
    "types",
)
# Of these Debezium loses or changes the value; what we write is in docs/capture.md.
LOST = {"name_", "numeric_3_minus_2", "matrix"}
OTHER_KEYS = {"by_index", "unique_only"}  # tables whose key Debezium has wrong, or only in the snapshot
LEFT_OUT = {"halved_stored", "halved_virtual"}
MODES = {
    "decimal.handling.mode": "string",
    "interval.handling.mode": "string",
    "skipped.operations": "none",
    "publish.via.partition.root": "true",
}


@pytest.mark.long
@pytest.mark.timeout(400)
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_records_are_the_same(settings, unique, scenario):
    story = Scenario.read(scenario)
    ours, theirs = f"p{unique}", f"d{unique}"
    with psycopg.connect(reveal(settings.dsn()), autocommit=True) as connection:
        story.prepare(connection)
        tables = _tables(connection, scenario)
        config = {"topic.prefix": theirs, "table.include.list": ",".join(f"{scenario}.{t}" for t in tables)}
        database = Database.__new__(Database)
        database.settings, database.schema, database.connection = settings, scenario, connection
        capture = database.capture(*tables, name=ours)
        with Debezium(settings, config | MODES), database.running(capture):
            story.change(connection)
            connection.execute(f"create table {scenario}.zz_end (id int primary key)")
            database.await_written(capture)
            counts = {t: len(records(settings, capture.topic(f"{scenario}.{t}"))) for t in tables}
            read_until(settings, theirs, lambda found: len(found) >= sum(counts.values()) - 2)
        database.drop(capture)
        connection.execute(f"drop schema {scenario} cascade")
    Store(settings).remove(ours)
    found = []
    for table in tables:
        mine = [_comparable(each) for each in records(settings, f"{ours}.{scenario}.{table}")]
        other = [
            _comparable(each) for each in records(settings, f"{theirs}.{scenario}.{table}") if _says(each)
        ]
        found += [f"{table}: {len(mine)} records, {len(other)} of Debezium"] * (len(mine) != len(other))
        for place, (one, two) in enumerate(zip(mine, other, strict=False)):
            found += [f"{table}[{place}] {each}" for each in _differences(one, two)]
    assert found == [], "\n".join(found)


def _tables(connection, schema):
    found = connection.execute(
        "select c.relname from pg_class c join pg_namespace n on n.oid = c.relnamespace "
        "where n.nspname = %s and c.relkind in ('r', 'p') and not c.relispartition order by 1",
        [schema],
    )
    return [row[0] for row in found if row[0] not in OTHER_KEYS]


def _comparable(record):
    """All that both say of a change: its key, rows, and where it comes from."""
    headers = {
        name: text
        for name, text in record.headers.items()
        if name in ("__debezium.newkey", "__debezium.oldkey")
    }
    if record.value is None:
        return {"key": record.key, "value": None, "headers": headers}
    value = dict(record.value)
    source = value.pop("source")
    for name in ("ts_ms", "ts_us", "ts_ns"):
        value.pop(name)
    kept = {"connector", "db", "schema", "table", "xmin", "origin", "origin_lsn"}
    if source["snapshot"] == "false":
        kept |= {"ts_ms", "ts_us", "ts_ns", "snapshot", "txId", "lsn"}
    return {
        "key": record.key,
        **value,
        "source": {name: source[name] for name in sorted(kept)},
        "headers": headers,
    }


def _says(record):
    """Debezium writes tombstones for rows without a key, too: they say nothing."""
    return record.key is not None or record.value is not None


def _differences(ours, theirs):
    """Say where two records differ, but for values that Debezium loses."""
    for name in sorted({*ours, *theirs}):
        one, two = ours.get(name), theirs.get(name)
        if name in ("before", "after") and isinstance(one, dict) and isinstance(two, dict):
            for column in sorted({*one, *two}):
                if one.get(column) != two.get(column) and not _is_excused(name, column, one, two):
                    yield f"{name}.{column}: {one.get(column)!r:.80} / {two.get(column)!r:.80}"
        elif one != two:
            yield f"{name}: {one!r:.200} / {two!r:.200}"


def _is_excused(part, column, ours, theirs):
    if column in LOST or column not in theirs:  # of a type that Debezium does not know
        return True
    if column in LEFT_OUT and column not in ours:
        return True
    own = ours.get(column)
    if part == "before" and own is None and theirs[column] in ("", 0):  # it makes up what it does not know
        return True
    if isinstance(own, list) and any(
        each in ("infinity", 2147483647) or isinstance(each, list) for each in own
    ):
        return True
    if own == [None] and theirs[column] is None:
        return True
    return bool(PLACEHOLDER.search(str(theirs[column]))) and not PLACEHOLDER.search(str(ours.get(column)))
