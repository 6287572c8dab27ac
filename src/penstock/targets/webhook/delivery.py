"""Delivery: requests in order, with retries, a circuit that opens, and a verdict on those that fail."""

import random
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from penstock.errors import SinkError
from penstock.targets.webhook.blame import Blame, Fault
from penstock.targets.webhook.circuit import Circuit, CircuitState
from penstock.targets.webhook.client import Answer
from penstock.targets.webhook.event import Request
from penstock.targets.webhook.retries import Retries

Post = Callable[[Request, int], Answer]


@dataclass(frozen=True)
class Failure:
    """Why a request was given up: the last answer, and how many attempts there were."""

    answer: Answer
    attempts: int


@dataclass(frozen=True)
class Settled:
    """A request that is over: delivered, or with why it was given up."""

    request: Request
    failure: Failure | None = None


@dataclass
class Pending:
    """A request that is not settled; one that is suspected has used up its attempts."""

    request: Request
    attempts: int = 0
    tries: int = 0  # of those, since it was last given a new chance
    answer: Answer | None = None
    suspected: bool = False
    settled: Settled | None = None

    def deliver(self) -> None:
        self.settled = Settled(self.request)

    def give_up(self) -> None:
        answer = self.answer or Answer(None, "was not sent: the endpoint fails", left=False)
        self.settled = Settled(self.request, Failure(answer, self.attempts))


@dataclass(frozen=True)
class Rules:
    """What is done about failures; `once` sends nothing a second time that may have arrived."""

    retries: Retries = field(default_factory=Retries)
    circuit: Circuit = field(default_factory=Circuit)
    blame: Blame = field(default_factory=Blame)
    once: bool = False

    def fault(self, answer: Answer) -> Fault | None:
        """Return whose fault an answer is; a request that never left says nothing about its event."""
        if answer.status is not None:
            return None if answer.is_success else self.blame.fault(answer.status)
        return "either" if answer.left else "endpoint"


@dataclass
class Delivery:
    """Delivers requests one after the other.

    An event that has used up its attempts is suspected, and the next one is tried: if that is taken, the
    fault was the event's, and it is given up. If enough of them fail in a row, the endpoint is to blame: the
    circuit opens, and all of them wait and are tried again. Time and chance are given, for tests.
    """

    post: Post
    rules: Rules
    name: str
    state: CircuitState = field(default_factory=CircuitState)
    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.time
    chance: Callable[[], float] = random.random
    _open: list[Pending] = field(default_factory=list, init=False)  # in order, from the first unsettled on
    _waited: float = field(default=0.0, init=False)
    _probes: int = field(default=0, init=False)
    _gave_up: bool = field(default=False, init=False)

    def deliver(self, requests: Iterable[Request]) -> Iterator[Settled]:
        """Yield each request in its order once it is settled."""
        for request in requests:
            self._open.append(Pending(request))
            self._work()
            yield from self._settled()
        self._condemn()
        yield from self._settled()

    @property
    def is_open(self) -> bool:
        return self.rules.circuit.is_open(self.state)

    def _work(self) -> None:
        """Try what is neither settled nor suspected, in order; wait where the circuit is open."""
        while pending := next((each for each in self._open if not (each.settled or each.suspected)), None):
            if self._gave_up:
                pending.give_up()
                continue
            if not self.is_open:
                self._try(pending)
            while self.is_open and not self._gave_up and not all(each.settled for each in self._open):
                self._probe()

    def _settled(self) -> Iterator[Settled]:
        while self._open and (settled := self._open[0].settled):
            del self._open[0]
            yield settled

    def _try(self, pending: Pending) -> None:
        """Try a request until it is settled or suspected, or the circuit opens."""
        while not self._judge(pending, self._post(pending)):
            answer = pending.answer
            after = answer.retry_after if answer else None
            self.sleep(self.rules.retries.pause(pending.tries, after, self.chance()))

    def _post(self, pending: Pending) -> Answer:
        pending.attempts, pending.tries = pending.attempts + 1, pending.tries + 1
        pending.answer = self.post(pending.request, pending.attempts)
        return pending.answer

    def _judge(self, pending: Pending, answer: Answer) -> bool:
        """Draw the consequences of an answer; say whether there is nothing more to be tried for now."""
        fault = self.rules.fault(answer)
        if fault is None or fault == "event":
            self._conclude(pending, answer)
            return True
        if fault == "endpoint":
            self._count_failure()
            return self.is_open
        if self.rules.once:
            pending.give_up()
            self._count_failure()
            return True
        if pending.tries < self.rules.retries.attempts:
            return False
        self._suspect(pending)
        return True

    def _conclude(self, pending: Pending, answer: Answer) -> None:
        """The endpoint is well: it has taken the event, or refused it for what it is."""
        self.state = CircuitState()
        if answer.is_success:
            pending.deliver()
        elif len(pending.request.events) > 1:
            self._split(pending)
        else:
            pending.give_up()
        self._condemn(before=pending)

    def _suspect(self, pending: Pending) -> None:
        if len(pending.request.events) > 1:
            self._split(pending)
            return
        pending.suspected = True
        self._count_failure()

    def _split(self, pending: Pending) -> None:
        """Try the events of a request one by one: one of them may be to blame."""
        place = self._open.index(pending)
        self._open[place : place + 1] = [Pending(each, pending.attempts) for each in pending.request.split()]

    def _condemn(self, before: Pending | None = None) -> None:
        """Give those up that are suspected."""
        for each in self._open:
            if each is before:
                return
            if each.suspected and not each.settled:
                each.give_up()

    def _count_failure(self) -> None:
        self.state = self.rules.circuit.failed(self.state, self.clock())

    def _probe(self) -> None:
        """Rest, then send one request; if it is answered, the circuit closes and all have a new chance."""
        if not self._rest():
            return
        pending = self._candidate()
        answer = self._post(pending)
        fault = self.rules.fault(answer)
        if fault in ("endpoint", "either"):
            if self.rules.once and fault == "either":
                pending.give_up()
            self._count_failure()
            return
        for each in self._open:
            each.suspected, each.tries = False, 0
        self._conclude(pending, answer)

    def _candidate(self) -> Pending:
        """Return the next to be a probe, in turn: the first one might never be taken; but no key's second."""
        seen: set[str | None] = set()
        found = []
        for each in self._open:
            if not each.settled and not seen & each.request.keys:
                found.append(each)
            seen |= each.request.keys if not each.settled else set()
        self._probes += 1
        return found[(self._probes - 1) % len(found)]

    def _rest(self) -> bool:
        """Wait until a probe may be sent; who has waited too long fails, or, at most once, gives up."""
        left = self.rules.circuit.left(self.state, self.clock())
        if self._waited + left > self.rules.circuit.patience:
            self._stop_waiting()
            return False
        self.sleep(left)
        self._waited += left
        return True

    def _stop_waiting(self) -> None:
        if self.rules.once:
            self._gave_up = True
            return
        last = next((each.answer for each in reversed(self._open) if each.answer), None)
        said = last.said if last else "has failed before"
        event = next(each for each in self._open if not each.settled).request.events[0].id
        raise SinkError(
            f"webhook {self.name} {said}; {self.state.failures} failures in a row, "
            f"nothing is sent meanwhile, from event {event[:80]!r} on",
            hint="the batch is tried again; what is the event's fault can be declared: blame=Blame(event=…)",
        )
