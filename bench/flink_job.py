"""The PyFlink side of bench.flink, run by a Python of its own: count and sum by key, in thread mode.

It takes a JSON object from its standard input: `kafka` (the Java client's settings), `topic`, `ends` (where
to stop, by partition), `jar` (the connector), `marks` (a folder) and `every`. Each of the two subtasks writes
into the folder how many events it had, and the time at every so many of them.
"""

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

from pyflink.common import Configuration, Types, WatermarkStrategy  # type: ignore[import-not-found]
from pyflink.common.serialization import SimpleStringSchema  # type: ignore[import-not-found]
from pyflink.datastream import (  # type: ignore[import-not-found]
    KeyedProcessFunction,
    RuntimeContext,
    StreamExecutionEnvironment,
)
from pyflink.datastream.connectors.base import Sink  # type: ignore[import-not-found]
from pyflink.datastream.connectors.kafka import (  # type: ignore[import-not-found]
    KafkaOffsetsInitializer,
    KafkaSource,
    KafkaTopicPartition,
)
from pyflink.datastream.state import ValueStateDescriptor  # type: ignore[import-not-found]

PARALLELISM = 2
EVENT = Types.TUPLE([Types.STRING(), Types.DOUBLE()])
KEPT = Types.TUPLE([Types.LONG(), Types.DOUBLE()])
RESULT = Types.TUPLE([Types.STRING(), Types.LONG(), Types.DOUBLE()])
DISCARD = "org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink"


class CountAndSum(KeyedProcessFunction):  # type: ignore[misc]
    """As Flink's documentation has it: a call for each event, a value for the state of its key."""

    def __init__(self, marks: str, every: int) -> None:
        self._folder, self._every = marks, every
        self._seen = 0
        self._times: list[float] = []

    def open(self, runtime_context: RuntimeContext) -> None:
        self._kept = runtime_context.get_state(ValueStateDescriptor("kept", KEPT))

    def process_element(self, value: Any, ctx: Any) -> Iterator[tuple[str, int, float]]:  # noqa: ARG002
        n, total = self._kept.value() or (0, 0.0)
        n, total = n + 1, total + value[1]
        self._kept.update((n, total))
        self._seen += 1
        if self._seen % self._every == 0:
            self._times.append(time.monotonic())
        yield value[0], n, total

    def close(self) -> None:
        noted = Path(self._folder) / f"{uuid4()}.json"  # the subtask's number can't be asked in thread mode
        noted.write_text(json.dumps({"seen": self._seen, "times": self._times}))


def main() -> None:
    given = json.load(sys.stdin)
    flink = environment(given["jar"])
    texts = flink.from_source(source(given), WatermarkStrategy.no_watermarks(), given["topic"])
    events = texts.map(read, output_type=EVENT).key_by(lambda event: event[0], key_type=Types.STRING())
    counted = events.process(CountAndSum(given["marks"], given["every"]), output_type=RESULT)
    counted.sink_to(Sink(DISCARD))
    flink.execute("bench")


def read(text: str) -> tuple[str, float]:
    """Read the JSON here: the rows that Flink's own reader makes cost more on their way into Python."""
    event = json.loads(text)
    return event["key"], event["amount"]


def environment(jar: str) -> StreamExecutionEnvironment:
    """Thread mode; by default, state is on the heap and there are no checkpoints. All listen on loopback."""
    chosen = {
        "python.execution-mode": "thread",
        "python.executable": sys.executable,
        "pipeline.jars": Path(jar).as_uri(),
        "pipeline.object-reuse": "true",
        "rest.port": "0",
        **dict.fromkeys(("jobmanager.bind-host", "taskmanager.bind-host", "rest.bind-address"), "127.0.0.1"),
    }
    settings = Configuration()
    for name, value in chosen.items():
        settings.set_string(name, value)
    made = StreamExecutionEnvironment.get_execution_environment(settings)
    made.set_parallelism(PARALLELISM)
    return made


def source(given: dict[str, Any]) -> KafkaSource:
    ends = {KafkaTopicPartition(given["topic"], int(each)): end for each, end in given["ends"].items()}
    return (
        KafkaSource.builder()
        .set_properties(given["kafka"])
        .set_topics(given["topic"])
        .set_starting_offsets(KafkaOffsetsInitializer.earliest())
        .set_bounded(KafkaOffsetsInitializer.offsets(ends))
        .set_value_only_deserializer(SimpleStringSchema())
        .build()
    )


if __name__ == "__main__":
    main()
