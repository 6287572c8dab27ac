"""What modules declare, as the doctor looks at it: topics, and flows with the clocks in their functions."""

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from penstock.durations import duration
from penstock.identity import Identity
from penstock.log import Table, Topic
from penstock.ops.doctor.probes import DeclaredFlow
from penstock.pipeline import Pipeline
from penstock.pipeline.flow import Flow
from penstock.process.sql.query import Query
from penstock.process.windows import PROCESSING_TIME

_CLOCKS = ("current_timestamp", "localtimestamp", "current_date", "now", "utcnow", "today")
_MODULES = ("datetime", "date", "F", "functions", "sf")
_SQL = re.compile(r"\b(current_timestamp|localtimestamp|current_date|now\s*\()", re.IGNORECASE)
_WRITTEN = ("_source.written", "written")


@dataclass(frozen=True)
class Declared:
    """The topics and pipelines that modules declare."""

    topics: tuple[Topic[Any], ...] = ()
    pipelines: tuple[Pipeline, ...] = ()

    @property
    def every(self) -> tuple[Topic[Any], ...]:
        """The topics that are declared, by themselves or in a flow."""
        return (*self.topics, *(each for pipeline in self.pipelines for each in pipeline.topics.values()))

    @property
    def events(self) -> tuple[str, ...]:
        """The names of topics in which each record is an event of its own."""
        found = (each for each in self.every if not (isinstance(each, Table) or each.is_captured))
        return tuple(dict.fromkeys(each.name for each in found))

    def topic(self, name: str) -> Topic[Any] | None:
        """Return a topic that is declared, by itself or in a flow."""
        return next((each for each in self.every if each.name == name), None)

    def flows(self, namespace: str) -> tuple[DeclaredFlow, ...]:
        """Return what is said of each flow."""
        return tuple(
            _described(Identity.of(namespace, pipeline.name, flow.name).label, flow)
            for pipeline in self.pipelines
            for flow in pipeline.flows.values()
        )


def _described(label: str, flow: Flow) -> DeclaredFlow:
    return DeclaredFlow(
        label,
        flow.mode,
        tuple(topic.name for topic in flow.reads.values()),
        tuple(topic.name for topic in flow.reads.values() if isinstance(topic, Table)),
        duration(flow.timeout).total_seconds(),
        duration(flow.checkpoint_interval).total_seconds() if flow.checkpoint_interval else 0.0,
        tuple(clocks(flow.function)),
    )


def clocks(function: object) -> Iterator[str]:
    """Yield the places of a flow's function that ask for the present time, or go by a record's arrival."""
    if isinstance(function, Query):
        yield from (f"{found[0].strip()} in its query" for found in _SQL.finditer(function.text))
        return
    try:
        lines, first = inspect.getsourcelines(function)  # type: ignore[arg-type]
        tree = ast.parse(textwrap.dedent("".join(lines)))
    except (OSError, TypeError, SyntaxError):
        return  # what was made on the fly has no source
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and (_is_clock(node) or _goes_by_arrival(node)):
            yield f"{ast.unparse(node)[:80]} in line {first + node.lineno - 1}"


def _is_clock(call: ast.Call) -> bool:
    match call.func:
        case ast.Attribute(attr=name, value=ast.Name(id=module)):
            return name in _CLOCKS and module in _MODULES
        case ast.Name(id=name):
            return name in _CLOCKS[:2]
        case _:
            return False


def _goes_by_arrival(call: ast.Call) -> bool:
    """Whether a window or a watermark is given the time at which the log took records in."""
    named = [each.value for each in call.keywords if each.arg == "time"]
    first = call.args[:1] if _name(call) in ("window", "withWatermark") else []
    return any(_is_arrival(each) for each in (*named, *first))


def _is_arrival(value: ast.expr) -> bool:
    match value:
        case ast.Constant(value=str(name)):
            return name in (*_WRITTEN, PROCESSING_TIME)
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name == "PROCESSING_TIME"
        case _:
            return False


def _name(call: ast.Call) -> str:
    return getattr(call.func, "attr", getattr(call.func, "id", ""))
