"""A pattern as the user describes it: steps in an order, or one of several such ways."""

from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import product

from pyspark.sql import Column

from penstock.durations import duration
from penstock.errors import FlowError

Condition = str | Column


@dataclass(frozen=True)
class Step:
    """An event that fits; `unless` may not happen between the step before and this one."""

    condition: Condition
    unless: Condition | None = None
    repeats: bool = False  # whether more such events belong to it


@dataclass(frozen=True)
class Absence:
    """What must not come for so long after the last event of the steps."""

    condition: Condition
    within: timedelta


@dataclass(frozen=True)
class Pattern:
    """Steps that follow one another; of several ways the first that fits is the match.

    >>> three = Pattern.times(3, "kind = 'login_failed'")
    >>> pattern = three.then("kind = 'transfer' and amount > 1000", unless="kind = 'logout'")
    >>> len(pattern.ways[0])
    4

    Conditions are SQL over the columns of an event, or Columns.
    """

    ways: tuple[tuple[Step, ...], ...]
    absence: Absence | None = None

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
        found = [_pattern(each) for each in patterns]
        if any(each.absence is not None for each in found):
            raise FlowError(
                "one of several alternatives ends with what must not come",
                hint="say not_followed_by of all of them together, or match each by itself",
            )
        return cls(tuple(way for each in found for way in each.ways))

    def then(self, following: "Pattern | Condition", *, unless: Condition | None = None) -> "Pattern":
        """This, then the other; if `unless` happens between the two, it was not a match."""
        self._refuse_steps_after_absence()
        if isinstance(following, Pattern) and following.absence is not None:
            return replace(
                self.then(replace(following, absence=None), unless=unless), absence=following.absence
            )
        return Pattern(
            tuple(
                (*before, replace(first, unless=unless), *rest)
                for before, (first, *rest) in product(self.ways, _pattern(following).ways)
            )
        )

    def not_followed_by(self, condition: Condition, *, within: str | timedelta) -> "Pattern":
        """This, and then for so long after its last event no event that fits: the last step of a pattern.

        >>> unpaid = Pattern.one("kind = 'order'").not_followed_by("kind = 'payment'", within="10 minutes")
        """
        self._refuse_steps_after_absence()
        return replace(self, absence=Absence(condition, duration(within)))

    def _refuse_steps_after_absence(self) -> None:
        if self.absence is not None:
            raise FlowError(
                "a pattern goes on after what must not come",
                hint="say it last; between two steps it is then(…, unless=…)",
            )


def _pattern(given: Pattern | Condition) -> Pattern:
    return given if isinstance(given, Pattern) else Pattern.one(given)


def refuse_repeats(pattern: Pattern, what: str) -> None:
    """Refuse a step that goes on where a match has to have one end."""
    if any(step.repeats for way in pattern.ways for step in way):
        raise FlowError(
            f"{what} has a step that goes on, which could end in many ways",
            hint="say how many events it has: Pattern.times(2, …)",
        )
