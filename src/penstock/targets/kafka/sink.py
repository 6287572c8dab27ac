"""The Kafka sink: rows into topics, each batch once in each lane, by transactions."""

from datetime import timedelta

from penstock.durations import duration
from penstock.settings import Settings
from penstock.targets.kafka.lane import KafkaLanes
from penstock.targets.lanes import LaneSink
from penstock.targets.sink import Guarantee


class KafkaSink(LaneSink):
    """Writes rows of (topic, key, value, headers); `timeout` is how long a transaction may take."""

    def __init__(
        self,
        settings: Settings,
        id: str,
        *,
        lanes: int,
        guarantee: Guarantee = "exactly-once",
        timeout: str | timedelta = "1 minute",
    ) -> None:
        timeout_ms = duration(timeout) // timedelta(milliseconds=1)
        super().__init__(id, KafkaLanes(settings.client(), id, timeout_ms), count=lanes, guarantee=guarantee)
