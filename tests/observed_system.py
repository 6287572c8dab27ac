"""A system as operations see it: a value with something of every kind in it."""

from datetime import UTC, datetime
from pathlib import Path

from penstock.archive.status import ArchiveStatus
from penstock.capture.status import CaptureStatus
from penstock.local import ServiceStatus
from penstock.log.groups import Member
from penstock.ops.model import (
    Commit,
    DeadLetterStatus,
    GroupStatus,
    PartitionLag,
    PartitionRange,
    System,
    TopicStatus,
)
from penstock.pipeline.flow_status import FlowStatus, LatencyHistogram, Sample, Trouble
from penstock.pipeline.latency import BOUNDS
from penstock.replica.status import ReplicaStatus

AT = 1_800_000_000.0
COUNTS = (0, 500, 900, 990, *[1000] * (len(BOUNDS) - 4))


def sample(at, **changes):
    made = {"batch": 7, "rows": 300, "seconds": 0.8, "behind": 12, "watermark": AT - 42.0}
    return Sample(at, **(made | {"state_rows": 1500, "state_bytes": 2_000_000, "sink_ms": 300.0} | changes))


def flow(label="shop.bill", **changes):
    made = {
        "state": "running",
        "at": AT - 2,
        "started": AT - 600,
        "process": "host/17",
        "reads": ("orders",),
        "target": "topic receipts",
        "rows": 1000,
        "batches": 9,
        "late": 3,
        "malformed": 1,
        "latency": LatencyHistogram(COUNTS, 1000, 123.5),
        "phases": {"addBatch": 0.5, "triggerExecution": 0.8},
        "samples": tuple(sample(AT - 122 + 30 * n) for n in range(5)),
    }
    return FlowStatus(label, **(made | changes))


def lag(partition=0, position=60, end=100, seconds=30.0, **changes):
    return PartitionLag("orders", partition, position, end, seconds, **changes)


def group(name="billing", kind="consumer", lags=(), **changes):
    made = {"state": "stable", "judgement": "warning"}
    members = (Member("m-1", None, "/127.0.0.1", (("orders", 0),)),)
    return GroupStatus(name, kind, members=members, lags=tuple(lags), **(made | changes))


def topic(name="orders", **config):
    ranges = {0: PartitionRange(10, 100, 100), 1: PartitionRange(0, 50, 50)}
    return TopicStatus(name, ranges, 1, {"retention.ms": "604800000", **config})


def capture(**changes):
    made = {"state": "running", "process": "host/1", "slot": "reserved", "behind": 2048, "retained": 4096}
    rest = {"seconds": 1.5, "changes": 10, "last_event": datetime.fromtimestamp(AT, UTC), "error": ""}
    return CaptureStatus("shop", snapshot="done", **(made | rest | changes))


def system(**changes):
    service = ServiceStatus("kafka", "running", 4242, "127.0.0.1:9092", "4.3.1", 75.0, Path("logs/kafka.log"))
    made = {
        "services": (service,),
        "topics": (topic(),),
        "groups": (group(lags=(lag(left=3600.0, judgement="warning", commits=(Commit(AT, 60, 100),)),)),),
        "flows": (flow(restarts=2, troubles=(Trouble(AT - 90, "the broker went away"),)),),
        "captures": (capture(),),
        "replicas": (ReplicaStatus("copy", "shop", "shop", "running", "host/2", 3, 5, 0.5, None, ""),),
        "archives": (
            ArchiveStatus(
                "orders", "/srv/a", "running", 3, 900, 7, 100, "7 days", "10 minutes", 4.0, "p", ""
            ),
        ),
        "dead_letters": (
            DeadLetterStatus("orders.dead-letters", "orders", 4, AT - 60, "amount is missing", kept=9),
        ),
    }
    return System(AT, **(made | changes))
