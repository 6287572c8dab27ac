"""Regular expressions, matched in time proportional to the text, whoever wrote them.

Python's own matcher tries one way after the other, which takes exponential time for `^(a+)+$`. Here all ways
are followed at once, so that every character is looked at once for each state of the expression.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from re import _constants as op  # type: ignore[attr-defined]
from re import _parser  # type: ignore[attr-defined]
from typing import Any

_MOST_STATES = 10_000
_MOST_STEPS = 500_000
_UNREADABLE = (re.error, OverflowError, RecursionError)
_CATEGORIES = {
    op.CATEGORY_DIGIT: re.compile(r"\d"),
    op.CATEGORY_NOT_DIGIT: re.compile(r"\D"),
    op.CATEGORY_SPACE: re.compile(r"\s"),
    op.CATEGORY_NOT_SPACE: re.compile(r"\S"),
    op.CATEGORY_WORD: re.compile(r"\w"),
    op.CATEGORY_NOT_WORD: re.compile(r"\W"),
}
_WORD = _CATEGORIES[op.CATEGORY_WORD]
Takes = Callable[[str], bool]
Holds = Callable[[str, int], bool]


class UndecidedError(Exception):
    """Whether an expression matches can't be said: it is no regular expression, or too large."""


def search(pattern: str, text: str) -> bool | None:
    """Whether an expression matches somewhere in a text; None if that can't be said.

    >>> search("^(a+)+$", "a" * 1000 + "!")
    False
    """
    try:
        return _program(pattern).run(text, range(len(text) + 1)) is not None
    except UndecidedError:
        return None


@lru_cache(maxsize=256)
def _program(pattern: str) -> "_Program":
    try:
        tree = _parser.parse(pattern)
    except _UNREADABLE as error:
        raise UndecidedError(str(error)) from error
    if tree.state.flags != re.UNICODE:
        raise UndecidedError("it sets flags")
    return _compiled(tree)


def _compiled(tree: Any) -> "_Program":
    program = _Program()
    try:
        program.start = program.sequence(tree, program.add(_State()))
    except RecursionError as error:
        raise UndecidedError("it is nested too deeply") from error
    return program


@dataclass
class _State:
    """What a match waits for: a character, a condition, or nothing; the end has no `next`."""

    next: list[int] = field(default_factory=list)
    takes: Takes | None = None
    holds: Holds | None = None


class _Program:
    """The states of an expression, made from its end to its beginning."""

    def __init__(self) -> None:
        self.states: list[_State] = []
        self.start = 0

    def add(self, state: _State) -> int:
        if len(self.states) >= _MOST_STATES:
            raise UndecidedError(f"it has more than {_MOST_STATES} states")
        self.states.append(state)
        return len(self.states) - 1

    def sequence(self, items: Any, then: int) -> int:
        for code, argument in reversed(list(items)):
            then = self._item(code, argument, then)
        return then

    def _item(self, code: Any, argument: Any, then: int) -> int:
        if code in _SINGLE:
            return self.add(_State([then], takes=_SINGLE[code](argument)))
        match code:
            case op.BRANCH:
                return self.add(_State([self.sequence(each, then) for each in argument[1]]))
            case op.SUBPATTERN if not argument[1] and not argument[2]:
                return self.sequence(argument[3], then)
            case op.MAX_REPEAT | op.MIN_REPEAT:
                least, most, items = argument
                return self._repeat(least, most, items, then)
            case op.AT if argument in _PLACES:
                return self.add(_State([then], holds=_PLACES[argument]))
            case op.ASSERT | op.ASSERT_NOT:
                return self.add(_State([then], holds=_look(*argument, wanted=code is op.ASSERT)))
        raise UndecidedError(f"{code} is not regular")

    def _repeat(self, least: int, most: int, items: Any, then: int) -> int:
        if most is op.MAXREPEAT:
            loop = self.add(_State([then]))
            self.states[loop].next.append(self.sequence(items, loop))
            then = loop
        else:
            for _ in range(most - least):
                then = self.add(_State([self.sequence(items, then), then]))
        for _ in range(least):
            then = self.sequence(items, then)
        return then

    def run(self, text: str, starts: Iterable[int]) -> int | None:
        """The end of the shortest match that begins at one of some places, in order."""
        begins, steps = set(starts), 0
        last = max(begins)
        active: set[int] = set()
        for position in range(min(begins), len(text) + 1):
            if position in begins:
                active.add(self.start)
            active = self._reached(active, text, position)
            if not active and position > last:
                return None
            if any(not self.states[each].next for each in active):
                return position
            steps += len(active) + 1
            if steps > _MOST_STEPS:
                raise UndecidedError(f"it takes more than {_MOST_STEPS} steps")
            if position < len(text):
                active = self._after(active, text[position])
        return None

    def _reached(self, active: set[int], text: str, position: int) -> set[int]:
        """The states that can be had without taking a character."""
        reached, pending = set(active), list(active)
        while pending:
            state = self.states[pending.pop()]
            if state.takes is None and (state.holds is None or state.holds(text, position)):
                new = [each for each in state.next if each not in reached]
                reached.update(new)
                pending.extend(new)
        return reached

    def _after(self, active: set[int], character: str) -> set[int]:
        states = [self.states[each] for each in active]
        return {state.next[0] for state in states if state.takes is not None and state.takes(character)}


def _look(direction: int, items: Any, *, wanted: bool) -> Holds:
    """A condition on what follows or precedes; each place is looked at once."""
    inner = _compiled(items)
    least, most = items.getwidth()
    if direction < 0 and least != most:
        raise UndecidedError("it looks behind for texts of several lengths")

    @lru_cache(maxsize=4096)
    def holds(text: str, position: int) -> bool:
        if direction > 0:
            return (inner.run(text, [position]) is not None) is wanted
        begin = position - least
        return (begin >= 0 and inner.run(text, [begin]) is not None) is wanted

    return holds


def _one_of(items: Any) -> Takes:
    negated = items[0][0] is op.NEGATE
    tests = [_SINGLE[code](argument) for code, argument in items[1 if negated else 0 :]]
    return lambda character: any(test(character) for test in tests) is not negated


def _category(name: Any) -> Takes:
    found = _CATEGORIES[name]
    return lambda character: found.match(character) is not None


_SINGLE: dict[Any, Callable[[Any], Takes]] = {
    op.LITERAL: lambda code: lambda character: ord(character) == code,
    op.NOT_LITERAL: lambda code: lambda character: ord(character) != code,
    op.RANGE: lambda ends: lambda character: ends[0] <= ord(character) <= ends[1],
    op.ANY: lambda _: lambda character: character != "\n",
    op.CATEGORY: _category,
    op.IN: _one_of,
}


def _at_boundary(text: str, position: int) -> bool:
    before = position > 0 and _WORD.match(text[position - 1]) is not None
    after = position < len(text) and _WORD.match(text[position]) is not None
    return before is not after


_PLACES: dict[Any, Holds] = {
    op.AT_BEGINNING: lambda _, position: position == 0,
    op.AT_BEGINNING_STRING: lambda _, position: position == 0,
    op.AT_END: lambda text, position: text[position:] in ("", "\n"),
    op.AT_END_STRING: lambda text, position: position == len(text),
    op.AT_BOUNDARY: _at_boundary,
    op.AT_NON_BOUNDARY: lambda text, position: not _at_boundary(text, position),
}
