"""Results into topics of Kafka, each exactly once."""

from penstock.targets.kafka.sink import KafkaSink
from penstock.targets.kafka.target import KafkaTarget

__all__ = ["KafkaSink", "KafkaTarget"]
