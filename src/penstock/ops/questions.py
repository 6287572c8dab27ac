"""Questions that are asked at the same time: each is answered, or it is said why not, within a time."""

import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any, TypeVar

from penstock.errors import PenstockError

T = TypeVar("T")
_AT_ONCE = 16


def ask(questions: Mapping[str, Callable[[], T]], patience: float, unanswered: list[str]) -> dict[str, T]:
    """Return the answers by name; what is not answered in so many seconds is added to `unanswered`.

    >>> missing = []
    >>> ask({"sum": lambda: 1 + 1, "share": lambda: 1 // 0}, 5.0, missing)
    {'sum': 2}
    >>> missing
    ['share: ZeroDivisionError: integer division or modulo by zero']
    """
    deadline, places = time.monotonic() + patience, threading.Semaphore(_AT_ONCE)
    futures = {name: _begun(question, places) for name, question in questions.items()}
    answers: dict[str, T] = {}
    for name, future in futures.items():
        try:
            answers[name] = future.result(max(0.0, deadline - time.monotonic()))
        except Exception as error:
            unanswered.append(f"{name}: {_reason(error, future, patience)}")
    return answers


def _begun(question: Callable[[], T], places: threading.Semaphore) -> "Future[T]":
    """Begin in a thread that nobody waits for at the end: a client that gets no answer can't be stopped."""
    future: Future[T] = Future()

    def work() -> None:
        with places:
            try:
                future.set_result(question())
            except Exception as error:
                future.set_exception(error)

    threading.Thread(target=work, daemon=True).start()
    return future


def _reason(error: Exception, future: "Future[Any]", patience: float) -> str:
    if isinstance(error, TimeoutError) and not future.done():
        return f"no answer in {patience:.0f} s"
    return error.message if isinstance(error, PenstockError) else f"{type(error).__name__}: {error}"
