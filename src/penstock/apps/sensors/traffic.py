"""Readings of machines that run hot, stop for a while, or stand behind a gateway that is cut off."""

from collections import defaultdict, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from heapq import heappop, heappush
from random import Random

from penstock.apps.sensors.events import GATEWAYS, Reading

START = datetime(2026, 1, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)
EVERY = 5 * SECOND  # between two readings of a machine
HOT = 95.0


@dataclass
class Machine:
    """What a machine does next: how many readings it will be hot for, or how long it pauses."""

    name: str
    gateway: str
    hot: int = 0
    readings: list[Reading] = field(default_factory=list)


class Traffic:
    """An endless stream of readings in the order of their arrival; `machines` know what they have sent.

    A gateway sends its machines' readings in order. It is cut off now and then, for minutes: then it keeps
    them, and sends them all when it is back, while those of other gateways have gone on.
    """

    def __init__(self, machines: int = 300, seed: int = 1) -> None:
        self.machines = [Machine(f"m{n}", GATEWAYS[n % len(GATEWAYS)]) for n in range(machines)]
        self.sent = self.outages = 0
        self.reached = dict.fromkeys(GATEWAYS, START)  # the highest time that each gateway has sent
        self._random = Random(seed)  # noqa: S311
        self._due: list[tuple[datetime, int]] = []  # when a machine has its next reading
        for number in range(machines):
            heappush(self._due, (START + self._random.randrange(5_000) * timedelta(milliseconds=1), number))
        self._kept: dict[str, list[Reading]] = defaultdict(list)
        self._back: dict[str, datetime] = {}  # gateways that are cut off, until when
        self._cut = START + 60 * SECOND  # when the next one is
        self._ready: deque[Reading] = deque()  # that have arrived

    def next(self) -> Reading:
        """Return the reading that arrives next."""
        while not self._ready:
            self._read()
        return self._sent(self._ready.popleft())

    def rest(self) -> Iterator[Reading]:
        """Yield what is still on its way, and a reading of each gateway itself, which moves the watermark."""
        while self._ready:
            yield self._sent(self._ready.popleft())
        for gateway in GATEWAYS:
            yield from map(self._sent, self._kept.pop(gateway, []))
        end = max(self.reached.values())
        for gateway in GATEWAYS:
            self.sent += 1
            self.reached[gateway] = end
            yield Reading(f"gateway-{gateway}", gateway, 20.0, end)

    def _sent(self, reading: Reading) -> Reading:
        self.sent += 1
        self.reached[reading.gateway] = max(reading.at, self.reached[reading.gateway])
        return reading

    def _read(self) -> None:
        """Let the machine whose turn it is have a reading, and its gateway send it, or keep it."""
        at, number = heappop(self._due)
        machine = self.machines[number]
        self._look_after_gateways(at)
        reading = self._reading(machine, at)
        machine.readings.append(reading)
        heappush(self._due, (at + self._pause(), number))
        (self._kept[machine.gateway] if machine.gateway in self._back else self._ready).append(reading)

    def _look_after_gateways(self, now: datetime) -> None:
        for gateway in [name for name, until in self._back.items() if until <= now]:
            del self._back[gateway]
            self._ready.extend(self._kept.pop(gateway, []))
        if now >= self._cut:
            self.outages += 1
            self._back[self._random.choice(GATEWAYS)] = now + self._random.randrange(40, 120) * SECOND
            self._cut = now + self._random.randrange(60, 240) * SECOND

    def _reading(self, machine: Machine, at: datetime) -> Reading:
        random = self._random
        if machine.hot == 0 and random.random() < 0.004:
            machine.hot = random.randrange(1, 7)  # one or two hot readings are no alert
        temperature = HOT if machine.hot else round(random.uniform(60, 89), 1)
        machine.hot = max(0, machine.hot - 1)
        number = len(machine.readings)
        return Reading(machine.name, machine.gateway, temperature, at, id=f"{machine.name}-{number}")

    def _pause(self) -> timedelta:
        """Mostly five seconds; now and then just less than what counts as silence, exactly it, or more."""
        if self._random.random() > 0.004:
            return EVERY
        return self._random.choice((29, 29.999, 30, 30.001, 40, 90, 200)) * SECOND
