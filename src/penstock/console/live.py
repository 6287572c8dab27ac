"""Looks at a system once a second while somebody watches; all browsers get the same snapshot."""

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import anyio
import msgspec
from starlette.concurrency import run_in_threadpool

from penstock.console.masked_system import masked
from penstock.console.masking import Masks
from penstock.console.snapshot import snapshot
from penstock.console.trends import Trends
from penstock.documents import JsonObject
from penstock.errors import PenstockError
from penstock.ops.doctor.checks import diagnose
from penstock.ops.doctor.finding import Finding, worst_first
from penstock.ops.doctor.probes import Probes
from penstock.ops.model import System

_log = logging.getLogger("penstock")
_EVERY = 1.0
_RESPITE = 0.2  # seconds at least between two looks, however long one takes
_NO_MASKS = Masks()
_LINGER = 20.0  # seconds for which looking goes on after somebody asked


class Live:
    """The last look, and its snapshot as JSON; the work is the same for one browser and for fifty."""

    def __init__(
        self,
        look: Callable[[], System],
        examined: Callable[[], Sequence[Finding]] = tuple,
        masks: Masks = _NO_MASKS,
        every: float = _EVERY,
        work: Callable[[], JsonObject] = dict,
    ) -> None:
        self._look, self._examined, self._masks, self._every = look, examined, masks, every
        self._work = work
        self.trends = Trends()
        self.system = System(0.0)
        self.text = ""
        self.findings: list[Finding] = []
        self._watchers, self._until = 0, 0.0
        self._wanted, self._changed = anyio.Event(), anyio.Event()

    async def run(self) -> None:
        """Look for ever, with rests while nobody watches; the first browser does not wait for a look."""
        self._until = time.monotonic() + _LINGER
        self._wanted.set()
        while True:
            await self._wanted.wait()
            began = time.monotonic()
            try:
                self._publish(*await run_in_threadpool(self._looked))
            except Exception:  # one look that fails must not end the console
                _log.exception("the system can't be looked at")
            took = time.monotonic() - began
            await anyio.sleep(max(_RESPITE, self._every - took))
            if not self._watchers and time.monotonic() > self._until:
                self._wanted = anyio.Event()

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Keep looking, as long as a browser is open."""
        self._watchers += 1
        self._wanted.set()
        try:
            yield
        finally:
            self._watchers -= 1

    async def recent(self) -> System:
        """Return the system as it is about now; the first one who asks waits for a look."""
        is_old = time.time() - self.system.at > _LINGER
        self._until = time.monotonic() + _LINGER
        changed = self._changed
        self._wanted.set()
        if is_old:
            with anyio.move_on_after(_LINGER):
                await changed.wait()
        return self.system

    async def next(self) -> str:
        """Wait for the next snapshot, and return it."""
        await self._changed.wait()
        return self.text

    def _looked(self) -> tuple[System, str]:
        """Look, and make the snapshot, in a thread."""
        try:
            system = self._look()
        except PenstockError as error:
            system = System(time.time(), unanswered=(error.message,))
        self.trends.add(system)
        shown, quick = masked(system, diagnose(system, Probes()), self._masks)
        self.findings = self._with_examined(quick)
        found = snapshot(shown, self.trends, self.findings) | self._work()
        return shown, msgspec.json.encode({"snapshot": found}).decode()

    def _with_examined(self, quick: list[Finding]) -> list[Finding]:
        """What is seen at once, and what the last examination has found besides."""
        known = {(each.id, each.subject) for each in quick}
        return worst_first(
            [*quick, *(each for each in self._examined() if (each.id, each.subject) not in known)]
        )

    def _publish(self, system: System, text: str) -> None:
        self.system, self.text = system, text
        changed, self._changed = self._changed, anyio.Event()
        changed.set()
