"""What users test their own pipelines with."""

from penstock.testing.crash_points import points_of
from penstock.testing.driver import Driver, wait_until_caught_up
from penstock.testing.feed import Feed
from penstock.testing.given import check_aggregate, given
from penstock.testing.harness import CrashHarness, Report
from penstock.testing.listener import PointListener
from penstock.testing.proxy import Proxy
from penstock.testing.recomputed import holds, recomputed
from penstock.testing.topic_rows import Sent, Tombstone

__all__ = [
    "CrashHarness",
    "Driver",
    "Feed",
    "PointListener",
    "Proxy",
    "Report",
    "Sent",
    "Tombstone",
    "check_aggregate",
    "given",
    "holds",
    "points_of",
    "recomputed",
    "wait_until_caught_up",
]
