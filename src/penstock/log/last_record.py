"""The last record of a partition, of those that are committed: what a compacted topic is often read for."""

from collections.abc import Callable

from penstock.log.broker import Broker
from penstock.log.cursor import Cursor
from penstock.log.message import Received
from penstock.settings import Settings

_NEAR = 50  # records before the end among which the last one is looked for before all are read


def last_record(
    settings: Settings, topic: str, partition: int, *, wait_for_open: bool = True
) -> bytes | None:
    """Return the value of the last committed record; it counts only if all before it is decided.

    Without `wait_for_open` a transaction that is still open, as a writer at work has one, is not waited for.
    """
    with Cursor(topic, settings, [partition]) as cursor:
        # A reader of committed records sees no others: the end behind them is asked for elsewhere.
        end = Broker(settings).end(topic, partition) if wait_for_open else cursor.ends()[partition]
        found = last_message(cursor, partition, end)
    return None if found is None else found.value()


def last_message(
    cursor: Cursor, partition: int, end: int, is_wanted: Callable[[Received], bool] = lambda _: True
) -> Received | None:
    """Return the last wanted message before an end; it is looked for near the end first."""
    first = cursor.beginnings()[partition]
    near = max(first, end - _NEAR)
    found = _last_between(cursor, partition, (near, end), is_wanted)
    return _last_between(cursor, partition, (first, near), is_wanted) if found is None else found


def _last_between(
    cursor: Cursor, partition: int, range: tuple[int, int], is_wanted: Callable[[Received], bool]
) -> Received | None:
    last = None
    cursor.go_to({partition: range[0]})
    for message in cursor.read_to({partition: range[1]}):
        last = message if is_wanted(message) else last
    return last
