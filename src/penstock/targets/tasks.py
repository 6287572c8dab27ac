"""Errors of tasks: what a worker raised comes to the driver as text, and is made an error again here."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from penstock import errors
from penstock.errors import PenstockError

_RAISED = re.compile(r"penstock\.errors\.(\w+): ([^\n]*)")


@contextmanager
def task_errors() -> Iterator[None]:
    """Raise what a task raised, if it was an error of ours."""
    try:
        yield
    except (Py4JJavaError, PySparkException) as error:
        found = raised(str(error))
        if found is None:
            raise
        raise found from error


def raised(text: str) -> PenstockError | None:
    """Return the error of ours that is in a trace.

    >>> raised("…\\npenstock.errors.FencedError: lane 1 was taken over\\n…")
    FencedError('lane 1 was taken over')
    """
    found = _RAISED.findall(text)
    if not found:
        return None
    name, message = found[-1]
    kind = getattr(errors, name, None)
    if not (isinstance(kind, type) and issubclass(kind, PenstockError)):
        return None
    made = BaseException.__new__(kind)  # some have data besides the message, which the text has not
    PenstockError.__init__(made, message)
    return made
