"""Plain lines by a template: text with the names of fields in it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from penstock.errors import DecodeError, InletError

_FIELD = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True)
class LineTemplate:
    """How a line holds an event's fields.

    >>> LineTemplate("{sensor} {celsius}C").values("kitchen 21.5C")
    {'sensor': 'kitchen', 'celsius': '21.5'}

    A field reaches up to the next occurrence of the text that follows it; the last one may hold anything.
    """

    text: str

    def __post_init__(self) -> None:
        if not self.fields:
            raise InletError(
                f"the line {self.text!r} names no field", hint="write them as {sensor} {celsius}"
            )
        if len(set(self.fields)) < len(self.fields):
            raise InletError(f"the line {self.text!r} names a field twice")
        if any(not between for between in self._texts[1:-1]):
            raise InletError(f"the line {self.text!r} has two fields with nothing between them")
        if "{" in (rest := "".join(self._texts)) or "}" in rest or "\n" in rest:
            raise InletError(f"the line {self.text!r} has a bracket or a line's end that belongs to no field")

    @cached_property
    def fields(self) -> tuple[str, ...]:
        """The names of the fields, in their order."""
        return tuple(_FIELD.findall(self.text))

    @cached_property
    def _texts(self) -> tuple[str, ...]:
        """What stands before, between and after the fields."""
        return tuple(_FIELD.split(self.text)[::2])

    def values(self, line: str) -> Mapping[str, str]:
        """Return the fields of a line; the time it takes grows with its length, whatever it holds."""
        first, *between, last = self._texts
        if not line.startswith(first):
            raise self._unlike(first)
        found, at = [], len(first)
        for text in between:
            end = line.find(text, at)
            if end < 0:
                raise self._unlike(text)
            found.append(line[at:end])
            at = end + len(text)
        if len(line) < at + len(last) or not line.endswith(last):
            raise self._unlike(last)
        return dict(zip(self.fields, [*found, line[at : len(line) - len(last)]], strict=True))

    def _unlike(self, missing: str) -> DecodeError:
        return DecodeError(f"the line is not like {self.text!r}: {missing!r} is not where it should be")
