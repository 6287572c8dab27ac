"""Archives at work: round after round, until they are stopped or can't go on."""

import logging
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

from penstock.archive.adding import retention
from penstock.archive.archiver import Archiver, Moved
from penstock.archive.losses import accept_losses
from penstock.durations import duration
from penstock.errors import FencedError, PenstockError, TryAgainError
from penstock.log import Broker
from penstock.log.archive.archive import Archive
from penstock.log.archive.declarations import Declarations
from penstock.settings import Settings

_log = logging.getLogger("penstock")
_PAUSE, _GLANCE = 5.0, 1.0  # seconds


class ArchiveRunner:
    """Archives topics, all that have an archive unless they are named, until `stopped` is set.

        ArchiveRunner(settings, ["orders"]).run(once=True)

    What may pass is tried again. A topic that can't go on is left, and the others go on; when none is left,
    or in the end with `once`, what was wrong is raised.
    """

    def __init__(
        self,
        settings: Settings,
        topics: Sequence[str] = (),
        stopped: threading.Event | None = None,
        *,
        skip_lost: bool = False,
        log: Callable[[str], None] = _log.info,
    ) -> None:
        self._settings, self._topics, self._skip_lost, self._log = settings, topics, skip_lost, log
        self._stopped = stopped or threading.Event()
        self._declarations = Declarations(settings)
        self._archivers: dict[str, tuple[Archive, Archiver]] = {}
        self._due: dict[str, float] = {}
        self._failed: dict[str, PenstockError] = {}

    def run(self, *, once: bool = False) -> None:
        """Run rounds one after the other, or one."""
        while not self._stopped.is_set():
            archives = self._declared()
            for each in archives:
                self._run_if_due(each, once)
            if self._failed and (once or len(self._failed) >= len(archives)):
                raise next(iter(self._failed.values()))
            if once:
                if not archives:
                    self._log("no topic has an archive: `penstock archive add` adds one")
                return
            self._stopped.wait(_GLANCE)
        for name in self._archivers:
            self._note(name, "stopped")

    def _declared(self) -> list[Archive]:
        """The archives as they are declared now; one that was removed is not missed."""
        try:
            if self._topics:
                return [self._declarations.get(name) for name in self._topics]
            return [self._declarations.get(name) for name in self._declarations.names()]
        except TryAgainError as error:
            self._log(f"{error}; again in {_PAUSE:.0f} s")
            self._stopped.wait(_PAUSE)
            return []

    def _run_if_due(self, archive: Archive, once: bool) -> None:
        name = archive.topic
        if self._stopped.is_set() or name in self._failed or time.monotonic() < self._due.get(name, 0.0):
            return
        try:
            self._round(archive)
            self._due[name] = time.monotonic() + duration(archive.every).total_seconds()
        except TryAgainError as error:
            self._archivers.pop(name, None)
            self._due[name] = time.monotonic() + _PAUSE
            self._log(f"{name}: {error}; again in {_PAUSE:.0f} s")
            if once:
                self._failed[name] = error
        except PenstockError as error:
            self._failed[name] = error
            self._log(f"{name}: {error}")
            if not isinstance(
                error, FencedError
            ):  # the other one is well, and its state is not ours to write
                self._note(name, "failed", str(error))

    def _round(self, archive: Archive) -> None:
        archiver = self._archiver(archive)
        limits = retention(Broker(self._settings), archive.topic)
        if limits:
            self._log(f"{archive.topic}: Kafka may delete records before they are archived: {limits}")
        moved = archiver.run_once()
        archiver.note("waiting")
        self._log(f"{archive.topic}: {_summary(moved)}")

    def _archiver(self, archive: Archive) -> Archiver:
        """The archiver of a topic, made once; it takes over from any other process."""
        if self._skip_lost:
            archive = accept_losses(archive, self._settings)
        known = self._archivers.get(archive.topic)
        if known is not None and known[0] == archive:
            return known[1]
        made = Archiver(
            archive,
            self._settings,
            is_stopped=self._stopped.is_set,
            report=lambda line: self._log(f"{archive.topic}: {line}"),
        )
        self._archivers[archive.topic] = (archive, made)
        return made

    def _note(self, name: str, state: str, error: str = "") -> None:
        with suppress(PenstockError):
            if name in self._archivers:
                self._archivers[name][1].note(state, error)


def _summary(moved: Moved) -> str:
    merged = f"; {moved.merged:,} small segments merged" if moved.merged else ""
    if not moved.records and not moved.deleted:
        return f"nothing new{merged}"
    files = "1 segment" if moved.segments == 1 else f"{moved.segments:,} segments"
    done = f"{moved.records:,} records archived in {files}; {moved.deleted:,} offsets deleted from Kafka"
    return done + merged
