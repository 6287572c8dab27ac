"""Compatibility modes, by the names and meanings of Confluent's registry."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import TypeVar

from penstock.schemas.compatibility.problem import Direction, Problem

Schema = TypeVar("Schema")


class Mode(StrEnum):
    """Who must be able to read whom when a subject gets a new schema."""

    NONE = "NONE"
    BACKWARD = "BACKWARD"
    BACKWARD_TRANSITIVE = "BACKWARD_TRANSITIVE"
    FORWARD = "FORWARD"
    FORWARD_TRANSITIVE = "FORWARD_TRANSITIVE"
    FULL = "FULL"
    FULL_TRANSITIVE = "FULL_TRANSITIVE"

    @property
    def transitive(self) -> bool:
        """Whether every earlier schema counts, not only the newest."""
        return self.value.endswith("_TRANSITIVE")

    @property
    def directions(self) -> tuple[Direction, ...]:
        """The directions in which reading must work."""
        return _DIRECTIONS[self.value.removesuffix("_TRANSITIVE")]


_DIRECTIONS = {
    "NONE": (),
    "BACKWARD": (Direction.BACKWARD,),
    "FORWARD": (Direction.FORWARD,),
    "FULL": (Direction.BACKWARD, Direction.FORWARD),
}


def problems_in_mode(
    new: Schema,
    earlier: Sequence[Schema],
    mode: Mode,
    reading: Callable[[Schema, Schema], list[Problem]],
) -> list[Problem]:
    """What `reading(reader, writer)` has against `new` in a mode; `earlier` is oldest first."""
    found: dict[tuple[str, ...], Problem] = {}
    for position in _positions(len(earlier), mode):
        for problem in _against(new, earlier[position], mode, reading):
            # A change that breaks many earlier schemas in one way is reported once, against the newest.
            key = (problem.path, problem.rule, problem.message, str(problem.direction))
            found.setdefault(key, replace(problem, against=position))
    return list(found.values())


def _positions(count: int, mode: Mode) -> range:
    oldest = 0 if mode.transitive else max(count - 1, 0)
    return range(count - 1, oldest - 1, -1)


def _against(
    new: Schema, old: Schema, mode: Mode, reading: Callable[[Schema, Schema], list[Problem]]
) -> Iterator[Problem]:
    for direction in mode.directions:
        reader, writer = (new, old) if direction is Direction.BACKWARD else (old, new)
        for problem in reading(reader, writer):
            yield replace(problem, direction=direction)
