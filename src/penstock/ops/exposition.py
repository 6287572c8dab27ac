"""Metrics as Prometheus reads them: its text format, version 0.0.4."""

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from penstock.errors import ConfigurationError

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
Kind = Literal["counter", "gauge", "histogram"]
Labels = Mapping[str, str]
_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_LABEL = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")


@dataclass(frozen=True)
class Point:
    """A value of a metric, with its labels; `suffix` is for the parts of a histogram."""

    value: float
    labels: Labels
    suffix: str = ""

    def __post_init__(self) -> None:
        wrong = [name for name in self.labels if not _LABEL.fullmatch(name)]
        if wrong:
            raise ConfigurationError(f"{wrong[0]!r} can't be the name of a label")


@dataclass(frozen=True)
class Metric:
    """A metric: its name, its kind, what it means, and its values."""

    name: str
    kind: Kind
    help: str
    points: tuple[Point, ...] = ()

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ConfigurationError(f"{self.name!r} can't be the name of a metric")
        if self.kind == "counter" and not self.name.endswith("_total"):
            raise ConfigurationError(f"{self.name!r} is a counter", hint="let its name end with _total")

    def lines(self) -> Iterator[str]:
        """Yield the lines of the format."""
        yield f"# HELP {self.name} {_escaped(self.help)}"
        yield f"# TYPE {self.name} {self.kind}"
        for point in self.points:
            yield f"{self.name}{point.suffix}{_labels(point.labels)} {_number(point.value)}"


def histogram(
    bounds: Iterable[float], counts: Iterable[int], count: int, sum: float, labels: Labels
) -> tuple[Point, ...]:
    """Return the points of a histogram whose counts are cumulative already."""
    within = [
        Point(each, {**labels, "le": _number(bound)}, "_bucket")
        for bound, each in zip(bounds, counts, strict=True)
    ]
    whole = Point(count, {**labels, "le": "+Inf"}, "_bucket")
    return (*within, whole, Point(sum, labels, "_sum"), Point(count, labels, "_count"))


def exposition(metrics: Iterable[Metric]) -> str:
    """Return the text of metrics; those without a value are declared nevertheless.

    >>> up = Metric("penstock_up", "gauge", "Whether it is up.", (Point(1, {"flow": "a.b"}),))
    >>> print(exposition([up]), end="")
    # HELP penstock_up Whether it is up.
    # TYPE penstock_up gauge
    penstock_up{flow="a.b"} 1
    """
    return "".join(f"{line}\n" for each in metrics for line in each.lines())


def _labels(labels: Labels) -> str:
    shown = ",".join(f'{name}="{_quoted(value)}"' for name, value in labels.items())
    return f"{{{shown}}}" if shown else ""


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n")


def _quoted(text: str) -> str:
    return _escaped(text).replace('"', r"\"")


def _number(value: float) -> str:
    """A number as Go and Prometheus read it.

    >>> _number(3), _number(0.25), _number(float("inf")), _number(float("nan"))
    ('3', '0.25', '+Inf', 'NaN')
    """
    if math.isnan(value) or math.isinf(value):
        return {math.inf: "+Inf", -math.inf: "-Inf"}.get(value, "NaN")
    return str(int(value)) if value == int(value) and abs(value) < 2**53 else repr(float(value))
