"""A member of the tour's group, as a process of its own: reads payments and reports what it read."""

import json
import signal
import sys
from itertools import groupby

from penstock.apps.tour.payments import Payment, payments
from penstock.log import Batch, Consumer
from penstock.settings import Settings

GROUP = "tour"
SESSION_SECONDS = 3


def main() -> None:
    """Read until SIGTERM; every batch is reported before its position is committed."""
    stopped: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: stopped.append(number))
    kafka = {"session.timeout.ms": SESSION_SECONDS * 1000, "heartbeat.interval.ms": 500}
    with Consumer(
        payments,
        Settings.load(),
        group=GROUP,
        on_rebalance=lambda change: _write(rebalance=change.kind, partitions=change.partitions),
        kafka=kafka,
    ) as consumer:
        while not stopped:
            for batch in consumer.batches(500, "50 ms", idle="200 ms"):
                _report(batch)


def _report(batch: Batch[Payment]) -> None:
    for partition, records in groupby(batch, key=lambda record: record.partition):
        offsets = [record.offset for record in records]
        _write(partition=partition, first=offsets[0], last=offsets[-1])


def _write(**line: object) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
