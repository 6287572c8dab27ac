"""Blame: whether a failed request is the event's fault, the endpoint's, or could be either's."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from penstock.errors import TargetError

Fault = Literal["event", "endpoint", "either"]
_ENDPOINT = frozenset({401, 402, 403, 404, 405, 407, 410, 421, 429})  # the address, the access or the load
_EITHER = frozenset({408, 409, 425})  # timeouts, and a request of the same key that is still at work


@dataclass(frozen=True)
class Blame:
    """Whose fault a status is, where it is not the usual one.

    >>> Blame().fault(422), Blame().fault(503), Blame().fault(404), Blame(event=(404,)).fault(404)
    ('event', 'either', 'endpoint', 'event')

    The event's: it is refused for good and goes to the dead letters. The endpoint's: it says nothing about
    the event, which waits until the endpoint is well. Either's: the event is tried as often as `Retries`
    allow, and goes to the dead letters if other events are taken.
    """

    event: tuple[int, ...] = ()
    endpoint: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        for name in ("event", "endpoint"):
            _check(name, getattr(self, name))
        both = sorted({*self.event} & {*self.endpoint})
        if both:
            raise TargetError(
                f"status {both[0]} is blamed on the event and on the endpoint", hint="choose one"
            )

    def fault(self, status: int) -> Fault:
        """Return whose fault an answer is that is no success."""
        if status in self.event:
            return "event"
        if status in self.endpoint:
            return "endpoint"
        if status in _EITHER or status >= 500:
            return "either"
        return "endpoint" if status in _ENDPOINT or status < 400 else "event"


def _check(name: str, statuses: Iterable[int]) -> None:
    if not isinstance(statuses, tuple):
        raise TargetError(f"{name} is {statuses!r}, expected a tuple of statuses", hint=f"{name}=(404,)")
    for status in statuses:
        if not isinstance(status, int) or not 300 <= status <= 599:
            raise TargetError(f"{name} holds {status!r}, expected statuses from 300 to 599")
