"""The Kafka sink: rows into topics, each batch once in each lane, by transactions."""

from datetime import timedelta

from penstock.durations import duration
from penstock.targets.kafka.lane import KafkaLanes
from penstock.targets.lanes import LaneSink
from penstock.targets.sink import SinkOptions


class KafkaSink(LaneSink):
    """Writes rows of (topic, key, value, headers)."""

    def __init__(self, options: SinkOptions) -> None:
        timeout_ms = duration(options.timeout) // timedelta(milliseconds=1)
        lanes = KafkaLanes(options.settings.client(), options.id, timeout_ms)
        super().__init__(lanes, options)
