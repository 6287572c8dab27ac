"""A pattern as the user describes it: steps in an order, or one of several such ways."""

from dataclasses import dataclass, replace
from itertools import product

from pyspark.sql import Column

from penstock.errors import FlowError

Condition = str | Column


@dataclass(frozen=True)
class Step:
    """An event that fits; `unless` may not happen between the step before and this one."""

    condition: Condition
    unless: Condition | None = None
    repeats: bool = False  # whether more such events belong to it


@dataclass(frozen=True)
class Pattern:
    """Steps that follow one another; of several ways the first that fits is told.

    >>> three = Pattern.times(3, "kind = 'login_failed'")
    >>> pattern = three.then("kind = 'transfer' and amount > 1000", unless="kind = 'logout'")
    >>> len(pattern.ways[0])
    4

    Conditions are SQL over the columns of an event, or Columns.
    """

    ways: tuple[tuple[Step, ...], ...]

    @classmethod
    def one(cls, condition: Condition) -> "Pattern":
        """An event that fits."""
        return cls.times(1, condition)

    @classmethod
    def times(cls, count: int, condition: Condition) -> "Pattern":
        """So many events that fit."""
        if count < 1:
            raise FlowError(f"a step of a pattern happens {count} times, expected at least once")
        return cls((count * (Step(condition),),))

    @classmethod
    def at_least(cls, count: int, condition: Condition) -> "Pattern":
        """So many events that fit, and all further ones until the next step."""
        (steps,) = cls.times(count, condition).ways
        return cls(((*steps[:-1], replace(steps[-1], repeats=True)),))

    @classmethod
    def any(cls, *patterns: "Pattern | Condition") -> "Pattern":
        """One of several patterns; where more than one fits, the first of them."""
        if not patterns:
            raise FlowError("a pattern of alternatives has none")
        return cls(tuple(way for each in patterns for way in _pattern(each).ways))

    def then(self, following: "Pattern | Condition", *, unless: Condition | None = None) -> "Pattern":
        """This, then the other; if `unless` happens between the two, it was not a match."""
        return Pattern(
            tuple(
                (*before, replace(first, unless=unless), *rest)
                for before, (first, *rest) in product(self.ways, _pattern(following).ways)
            )
        )


def _pattern(given: Pattern | Condition) -> Pattern:
    return given if isinstance(given, Pattern) else Pattern.one(given)
