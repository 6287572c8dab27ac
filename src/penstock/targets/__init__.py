"""Answers out, exactly once: targets, and sinks that write a batch and the ledger in one transaction."""

from penstock.targets.compared import Compared
from penstock.targets.kafka import KafkaSink, KafkaTarget
from penstock.targets.lake import LakeSink, LakeTable
from penstock.targets.lanes import Lane, Lanes, LaneSink, spread_by
from penstock.targets.opensearch import OpenSearchIndex
from penstock.targets.postgres import PostgresSink, PostgresTable
from penstock.targets.redis import RedisHashes, RedisInvalidation, RedisSortedSet
from penstock.targets.search import SearchIndex
from penstock.targets.sink import Sink, SinkOptions
from penstock.targets.target import Inspection, Results, Target
from penstock.targets.webhook import Webhook

__all__ = [
    "Compared",
    "Inspection",
    "KafkaSink",
    "KafkaTarget",
    "LakeSink",
    "LakeTable",
    "Lane",
    "LaneSink",
    "Lanes",
    "OpenSearchIndex",
    "PostgresSink",
    "PostgresTable",
    "RedisHashes",
    "RedisInvalidation",
    "RedisSortedSet",
    "Results",
    "SearchIndex",
    "Sink",
    "SinkOptions",
    "Target",
    "Webhook",
    "spread_by",
]
