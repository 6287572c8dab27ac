"""The text of a query: where something stands in it, and what Spark's errors say about it."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches

from pyspark.errors import PySparkException

from penstock.errors import FlowError
from penstock.process.spark.java import Java

_PLACE = re.compile(r"\bline (\d+),? pos (\d+)")  # as Spark's errors have it
_CLASS = re.compile(r"^\s*\[[A-Z0-9_.]+\]\s*")
_REST = re.compile(r"\s*SQLSTATE: \w+.*", re.S)
_NAMES = 3


@dataclass(frozen=True)
class QueryText:
    """What a flow's query says."""

    flow: str
    text: str

    def refusal(self, what: str, at: Java | None = None, *, hint: str | None = None) -> FlowError:
        """Return the error about something in the query; `at` is what Spark made of it."""
        return self._error(what, "" if at is None else _place(at.origin()), hint)

    def explained(self, error: PySparkException, columns: Iterable[str]) -> FlowError:
        """Return what Spark says about a query over columns, in a sentence and with its place."""
        found = _PLACE.search(str(error))
        place = f"line {found[1]}, column {int(found[2]) + 1}" if found else self._context(error)
        what, hint = _said(error, columns)
        return self._error(what, place, hint)

    def fragment(self, tree: Java) -> str:
        """Return what something was made of."""
        start, stop = tree.origin().startIndex(), tree.origin().stopIndex()
        return self.text[start.get() : stop.get() + 1] if start.isDefined() and stop.isDefined() else ""

    def _error(self, what: str, place: str, hint: str | None) -> FlowError:
        where = f"the query of flow {self.flow!r}" + (f", {place}" if place else "")
        return FlowError(f"{where}: {what}", hint=hint)

    def _context(self, error: PySparkException) -> str:
        """The place of what an error is about, where its text does not have it."""
        for context in error.getQueryContext():
            start = int(context.startIndex())
            if 0 <= start < len(self.text):
                before = self.text[:start]
                return f"line {before.count(chr(10)) + 1}, column {start - before.rfind(chr(10))}"
        return ""


def nearest(name: str, names: Iterable[str]) -> str | None:
    """Say which of the names may have been meant, or else which there are."""
    known = sorted(names)
    close = get_close_matches(name.lower(), known, _NAMES, 0.6)
    if close:
        return f"did you mean {' or '.join(close)}?"
    return f"there is {', '.join(known)}" if known else None


def _said(error: PySparkException, columns: Iterable[str]) -> tuple[str, str | None]:
    parameters = error.getMessageParameters() or {}
    condition = error.getCondition() or ""
    if condition.startswith(("UNRESOLVED_COLUMN", "FIELD_NOT_FOUND")):
        name = _plain(parameters.get("objectName") or parameters.get("fieldName", ""))
        near = parameters.get("proposal") or parameters.get("fields", "")
        known = {_plain(each).rpartition(".")[2] for each in near.split(",")} | {*columns}
        return f"there is no column {name!r}", nearest(name.rpartition(".")[2], known - {""})
    if condition.startswith("UNRESOLVED_ROUTINE"):
        return f"there is no function {_plain(parameters.get('routineName', ''))!r}", None
    if condition == "PARSE_SYNTAX_ERROR":
        return f"it can't be parsed at {parameters.get('error', '')}", None
    said = _REST.sub("", _CLASS.sub("", str(error.getMessage() or error))).strip()
    return " ".join(said.split()).rstrip("."), None


def _plain(name: str) -> str:
    """A name without its quotes."""
    return name.replace("`", "").strip()


def _place(origin: Java) -> str:
    if not origin.line().isDefined():
        return ""
    return f"line {origin.line().get()}, column {int(origin.startPosition().get()) + 1}"
