"""Compares a MariaDB, and its log as another reader reads it, with the topics that were captured of it."""

from collections import Counter

from pymysqlreplication import BinLogStreamReader
from pymysqlreplication.event import QueryEvent, XidEvent
from pymysqlreplication.row_event import DeleteRowsEvent, UpdateRowsEvent, WriteRowsEvent

from tests.capture.judge import KEYS, Records, change_differences, rebuilt, spelled, transaction_differences
from tests.mariadb_server import PASSWORD

_ROWS = (WriteRowsEvent, UpdateRowsEvent, DeleteRowsEvent)
_EVENTS = [*_ROWS, QueryEvent, XidEvent]


def held(server, table):
    """The rows that the database has, and its columns."""
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"select * from `{table}`")
        names = [each[0] for each in cursor.description]
        return Counter(spelled(_plain(zip(names, row, strict=True))) for row in cursor), names


def _plain(row):
    return {
        name: str(value) if value is not None and type(value) is not int else value for name, value in row
    }


def logged(server):
    """The changes of each table that the log has, by an independent reader."""
    reader = BinLogStreamReader(
        connection_settings={"host": "127.0.0.1", "port": server.port, "user": "shop", "password": PASSWORD},
        server_id=99_999,
        log_file="shop-bin.000001",
        log_pos=4,
        resume_stream=True,  # from the place above, not from the newest
        only_events=_EVENTS,
        only_schemas=["shop"],
    )
    found = {table: [] for table in KEYS}
    group = []
    try:
        for event in reader:
            if isinstance(event, _ROWS):
                group += [(event.table, each) for row in event.rows for each in _changes(event, row)]
            elif isinstance(event, QueryEvent) and event.query.upper() == "BEGIN":
                group = []  # one before it that has no end was cut off by a kill
            elif isinstance(event, XidEvent) or event.query.upper() == "COMMIT":
                for table, change in group:
                    found[table].append(change)
                group = []
            elif event.query.lower().startswith("truncate"):
                found[event.query.split("`")[1]].append(("t", None))
    finally:
        reader.close()
    return found


def _changes(event, row):
    if isinstance(event, WriteRowsEvent):
        return [("c", _plain(row["values"].items()))]
    if isinstance(event, DeleteRowsEvent):
        return [("d", _plain(row["values"].items()))]
    old, new = _plain(row["before_values"].items()), _plain(row["after_values"].items())
    keys = KEYS[event.table]
    if keys and any(old[key] != new[key] for key in keys):
        return [("d", old), ("c", new)]
    return [("u", new)]


def differences(settings, server, prefix="shop"):
    """What is wrong with the topics: nothing, if the list is empty."""
    wrong, known = [], logged(server)
    for table, keys in KEYS.items():
        found = Records(settings, f"{prefix}.shop.{table}")
        expected, names = held(server, table)
        seen = +rebuilt(found, keys, names)
        if expected != seen:
            lacks, has = list((expected - seen).items())[:3], list((seen - expected).items())[:3]
            wrong.append(f"{table}: lacks {lacks}, has {has}")
        wrong += change_differences(table, found, known[table], keys)
    return wrong + transaction_differences(settings, prefix, "shop")
