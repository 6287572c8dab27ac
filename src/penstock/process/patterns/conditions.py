"""The conditions of a pattern, and which of them an event fulfils, as the bits of a number."""

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import Column
from pyspark.sql import functions as F

from penstock.errors import FlowError
from penstock.process.patterns.pattern import Condition, Pattern

_MOST = 62  # one bit of a long for each


def conditions_of(pattern: Pattern) -> tuple[Condition, ...]:
    """Return all conditions of a pattern, each once."""
    found: list[Condition] = []
    said = [each for way in pattern.ways for step in way for each in (step.condition, step.unless)]
    said += [] if pattern.absence is None else [pattern.absence.condition]
    for each in said:
        if each is not None and not any(_same(each, other) for other in found):
            found.append(each)
    if len(found) > _MOST:
        raise FlowError(f"a pattern has {len(found)} conditions, at most {_MOST} expected")
    return tuple(found)


def fulfilled(conditions: Sequence[Condition]) -> Column:
    """Return the bits of the conditions that an event fulfils."""
    bits = [
        F.when(F.expr(each) if isinstance(each, str) else each, F.lit(1 << number)).otherwise(F.lit(0))
        for number, each in enumerate(conditions)
    ]
    return reduce(lambda one, other: one.bitwiseOR(other), (bit.cast("long") for bit in bits))


def bit_of(conditions: Sequence[Condition], condition: Condition | None) -> int:
    """Return the bit of a condition, none if there is no condition."""
    return sum(1 << number for number, each in enumerate(conditions) if _same(each, condition))


def _same(one: Condition, other: Condition | None) -> bool:
    """Columns can't be compared, texts can."""
    return one is other or (isinstance(one, str) and isinstance(other, str) and one == other)
