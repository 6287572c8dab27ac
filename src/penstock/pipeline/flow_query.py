"""The query of a flow as it is described: its text, tables and watermarks, checked without Spark."""

from collections.abc import Collection, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

from penstock.errors import FlowError
from penstock.events import time_field
from penstock.log import Table, Topic
from penstock.pipeline.flow import Output
from penstock.process.sql.query import EventTime, Query
from penstock.process.time.watermark import Watermark, as_watermark

Watermarks = Mapping[str, Watermark | str | timedelta]


def flow_query(
    flow: str,
    query: str | Path,
    reads: Mapping[str, Topic[Any]],
    looks_up: Mapping[str, Table[Any]],
    watermarks: Watermarks,
    output: Output,
) -> Query:
    """Return the function of a flow that is described by a query, or by a file that holds one."""
    _check_names(flow, [*reads, *looks_up])
    unknown = sorted({*watermarks} - {*reads})
    if unknown:
        raise FlowError(
            f"flow {flow!r} has a watermark of {unknown[0]!r}, which it does not read",
            hint=f"it reads {', '.join(sorted(reads))}",
        )
    return Query(
        flow,
        _text(flow, query),
        tuple(reads),
        tuple(looks_up),
        {name: _event_time(flow, name, reads[name], each) for name, each in watermarks.items()},
        frozenset(name for name, topic in reads.items() if isinstance(topic, Table)),
        output,
    )


def _text(flow: str, query: str | Path) -> str:
    if isinstance(query, Path):
        try:
            query = query.read_text()
        except OSError as error:
            raise FlowError(f"flow {flow!r} has its query in a file that can't be read: {error}") from error
    if not query.strip():
        raise FlowError(f"flow {flow!r} has an empty query")
    return query


def _check_names(flow: str, names: Collection[str]) -> None:
    """Names are arguments in Python and tables in SQL, where capitals make no difference."""
    for name in names:
        if not name.isidentifier():
            raise FlowError(
                f"flow {flow!r} has a table {name!r}, which is no name in SQL",
                hint="use letters, digits and _",
            )
    if len({name.lower() for name in names}) < len(names):
        raise FlowError(
            f"flow {flow!r} has two tables that differ in capitals only: {', '.join(sorted(names))}",
            hint="SQL does not see the difference",
        )


def _event_time(flow: str, name: str, topic: Topic[Any], watermark: Watermark | str | timedelta) -> EventTime:
    mark = as_watermark(watermark)
    if isinstance(topic, Table):
        raise FlowError(
            f"flow {flow!r} has a watermark of {name!r}, which is a table: its changes have none",
            hint="leave it out",
        )
    if mark.future is not None or mark.sources is not None:
        raise FlowError(
            f"flow {flow!r} has a watermark of {name!r} with `future` or `sources`, which a query has not",
            hint="give its delay and `idle`, or write the flow in Python",
        )
    return EventTime(topic.commit_time or time_field(topic.event, topic.time), mark)
