"""An answer as a test: the events as data, the flow's function over them, and what agrees of the result."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from penstock.errors import FlowError
from penstock.ops.why.answer import Answer, BehindEvent
from penstock.pipeline.flow import Flow
from penstock.process.columns.names import DELETED, SOURCE

_TEMPLATE = '''"""{title}"""

import datetime
from decimal import Decimal  # noqa: F401

import pytest
from {module} import {variable}

from penstock.process import session
from penstock.testing import holds, recomputed

EVENTS = {events}
LOOKED_UP = {looked_up}
RESULT = {result}


@pytest.fixture(scope="module")
def spark():
    made = session(name="test case", partitions=1, shuffle=1)
    yield made
    made.stop()


def test_the_result_comes_of_these_events(spark):
    found = recomputed(spark, {variable}.flows[{flow!r}], EVENTS, LOOKED_UP)
    assert holds(found, RESULT), found
'''


def exported(
    answer: Answer,
    flow: Flow,
    module: str,
    variable: str,
    looked_up: Mapping[str, Sequence[Mapping[str, Any]]] | None = None,
) -> str:
    """Return a file for pytest; `variable` of `module` is the pipeline."""
    if not answer.proved and not answer.but_for:
        raise FlowError(
            f"the result of {answer.target!r} was not proved, so that a test would fail",
            hint="ask about another result, or allow more --runs",
        )
    title = f"Why {answer.target} has this result of {answer.made.flow}, exported by `penstock why`."
    by_argument = {
        name: [_row(each) for each in answer.events if each.argument == name] for name in flow.reads
    }
    return _TEMPLATE.format(
        title=title,
        module=module,
        variable=variable,
        flow=flow.name,
        events=_literal(by_argument),
        looked_up=_literal(dict(looked_up or {})),
        result=_literal(_expected(answer)),
    )


def _expected(answer: Answer) -> dict[str, Any]:
    return {name: answer.result[name] for name in answer.compared if name in answer.result}


def _row(event: BehindEvent) -> dict[str, Any]:
    """An event as the flow sees it; headers are for the platform."""
    place = event.place
    source = {"topic": place.topic, "partition": place.partition, "offset": place.offset}
    given = {name: value for name, value in event.values.items() if value is not None or name == DELETED}
    return {**given, SOURCE: {**source, "written": event.written, "headers": None}}


def _literal(value: Any, depth: int = 0) -> str:
    """A value as Python spells it, an item in each line as far as the first levels."""
    if isinstance(value, Mapping):
        pairs = (f"{name!r}: {_literal(each, depth + 1)}" for name, each in value.items())
        return _bracketed("{", pairs, "}", depth)
    if isinstance(value, list):
        return _bracketed("[", (_literal(each, depth + 1) for each in value), "]", depth)
    return _moment(value) if isinstance(value, datetime) else repr(value)


def _bracketed(opening: str, items: Iterable[str], closing: str, depth: int) -> str:
    given = list(items)
    if depth > 1 or not given:
        return f"{opening}{', '.join(given)}{closing}"
    inner = "".join(f"{'    ' * (depth + 1)}{each},\n" for each in given)
    return f"{opening}\n{inner}{'    ' * depth}{closing}"


def _moment(value: datetime) -> str:
    return f"datetime.datetime.fromisoformat({value.isoformat()!r})"
