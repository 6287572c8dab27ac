"""A pipeline: flows under one name. It only describes; the runner runs."""

from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar, Unpack

from pyspark.sql import DataFrame

from penstock.errors import FlowError
from penstock.log import Table, Topic
from penstock.log.topic import check_name
from penstock.pipeline.flow import Flow, FlowOptions, Output
from penstock.pipeline.flow_query import flow_query
from penstock.process.sql.query import Query
from penstock.process.time.watermark import Watermark
from penstock.targets import Target
from penstock.targets.target import Guarantee, Mode

F = TypeVar("F", bound=Callable[..., DataFrame])


class Pipeline:
    """Flows that are run together.

    fraud = Pipeline("fraud")

    @fraud.flow(reads={"payments": payments}, writes=alerts)
    def large(payments: DataFrame) -> DataFrame:
        return payments.where("amount > 1000").select("card", "amount", "at", "_source")
    """

    def __init__(self, name: str) -> None:
        self.name = check_name(name, "pipeline")
        self.flows: dict[str, Flow] = {}

    def flow(
        self,
        *,
        name: str | None = None,
        reads: Mapping[str, Topic[Any]],
        writes: Topic[Any] | Target,
        mode: Mode = "stream",
        guarantee: Guarantee | None = None,
        side_outputs: tuple[Topic[Any], ...] = (),
        looks_up: Mapping[str, Table[Any]] | None = None,
        checkpoint_interval: str | timedelta | None = None,
        output: Output = "update",
        lanes: int | None = None,
        timeout: str | timedelta = "1 minute",
        version: str = "1",
        options: Mapping[str, str] | None = None,
        headers: tuple[str, ...] = (),
    ) -> Callable[[F], F]:
        """Make a flow of a function; the function stays what it is, and gives the flow its name.

        A `Projection`, as the views of event sourcing are, is given a `name`; it takes `records`.
        `reads` names the topic behind each argument, `writes` the topic or target of the results,
        `side_outputs` further topics: a result whose column `_side_output` has the name of one goes there.
        `looks_up` names tables of which the function gets the rows that they have when a batch begins, not
        the stream of their changes. `guarantee` is "exactly-once" in stream mode unless less is asked for, in
        real time "effectively-once" (readers know duplicates by the result's id). `checkpoint_interval` is
        how often a batch ends: in real time the choice between the cost of checkpoints and what is re-emitted
        after a crash. `output` is Spark's output mode. `lanes` is how many writers work side by side; it is
        fixed once the flow has written. `timeout` is how long a transaction may take, a little more than the
        longest batch: one that a dead process left open holds up readers for as long. `options` are those of
        Spark's Kafka source. `headers` names those of an event that its results in topics have, too, such as
        a trace's: `headers=("traceparent", "tracestate")`.
        """

        def add(function: F) -> F:
            made = Flow(
                name=name or _name(function),
                function=function,
                reads=dict(reads),
                writes=writes,
                mode=mode,
                guarantee=guarantee,
                side_outputs=tuple(side_outputs),
                looks_up=dict(looks_up or {}),
                checkpoint_interval=checkpoint_interval,
                output=output,
                lanes=lanes,
                timeout=timeout,
                version=version,
                options=dict(options or {}),
                headers=headers if isinstance(headers, str) else tuple(headers),
            )
            self._add(made)
            return function

        return add

    def sql(
        self,
        name: str,
        query: str | Path,
        *,
        reads: Mapping[str, Topic[Any]],
        writes: Topic[Any] | Target,
        watermark: Mapping[str, Watermark | str | timedelta] | None = None,
        output: Output | None = None,
        **options: Unpack[FlowOptions],
    ) -> Query:
        """Make a flow of a query, or of a file that holds one; return the function that it stands for.

            shop.sql(
                "views_per_minute",
                "SELECT url, window.start AS minute, count(*) AS views FROM views "
                "GROUP BY url, window(at, '1 minute')",
                reads={"views": views}, writes=per_minute, watermark={"views": "30 seconds"},
            )

        The names in `reads` and `looks_up` are the tables of the query. `watermark` says how long to wait for
        the events of a table that is read, by the time of its topic. With `output` "append", the default but
        in real time, a result is emitted once, when it is final; with "update", whenever it changes. All else
        is as in `flow`.
        """
        output = output or ("update" if options.get("mode") == "realtime" else "append")
        function = flow_query(name, query, reads, options.get("looks_up", {}), watermark or {}, output)
        self._add(
            Flow(name=name, function=function, reads=dict(reads), writes=writes, output=output, **options)
        )
        return function

    def _add(self, flow: Flow) -> None:
        if flow.name in self.flows:
            raise FlowError(f"pipeline {self.name!r} has two flows {flow.name!r}")
        self._refuse_two_classes(flow)
        self.flows[flow.name] = flow

    def _refuse_two_classes(self, flow: Flow) -> None:
        """A record of a topic is malformed or not, for all flows of a pipeline alike."""
        known = self.topics
        for topic in _read_by(flow):
            other = known.setdefault(topic.name, topic)
            if _read_as(topic) != _read_as(other):
                raise FlowError(
                    f"flow {flow.name!r} reads {topic.name!r} as {_spelled(topic)}, another flow of "
                    f"pipeline {self.name!r} as {_spelled(other)}",
                    hint="declare the topic once, and read it by that in all flows",
                )

    @property
    def topics(self) -> dict[str, Topic[Any]]:
        """Every topic that a flow of the pipeline reads or looks up, by name."""
        return {topic.name: topic for flow in self.flows.values() for topic in _read_by(flow)}


def _name(function: Callable[..., DataFrame]) -> str:
    found: str | None = getattr(function, "__name__", None)
    if found is None:
        raise FlowError(
            f"a flow of a {type(function).__name__} has no name", hint='give it one: flow(name="balances", …)'
        )
    return found


def _read_by(flow: Flow) -> list[Topic[Any]]:
    return [*flow.reads.values(), *flow.looks_up.values()]


def _read_as(topic: Topic[Any]) -> tuple[object, ...]:
    """What decides which of a topic's records are malformed."""
    return (type(topic), topic.event, topic.format, topic.upcasts, topic.unknown)


def _spelled(topic: Topic[Any]) -> str:
    kind = type(topic).__name__.lower()
    return f"a {kind} of {topic.event.__name__} in {topic.format}, unknown fields: {topic.unknown}"
