"""The doctor's examination: made when it is asked for, once for all who ask meanwhile."""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

from penstock.console.masked_system import masked
from penstock.console.masking import Masks
from penstock.documents import JsonObject, presentable
from penstock.errors import SettingsError
from penstock.ops.doctor.checks import diagnose
from penstock.ops.doctor.declared import Declared
from penstock.ops.doctor.finding import Finding, Fix
from penstock.ops.doctor.fixing import carry_out, offered
from penstock.ops.doctor.probes import Probes
from penstock.ops.model import System
from penstock.settings import Settings

FRESH, _RECENT = 30.0, 300.0  # seconds for which findings are good, and are part of the system's health
Examine = Callable[[], tuple[System, Probes]]


@dataclass(frozen=True)
class _Examined:
    """What an examination has found that began at a time of the monotonic clock."""

    began: float
    system: System
    findings: list[Finding]


class Examination:
    """The last findings; whoever wants new ones waits for an examination, which takes seconds."""

    def __init__(self, examine: Examine, masks: Masks) -> None:
        self._examine, self._masks = examine, masks
        self._lock = threading.Lock()
        self._done: _Examined | None = None

    def document(self, since: float) -> JsonObject:
        """Return the findings of an examination that began since then, the worst first."""
        done = self._examined(since)
        return {"at": done.system.at, "findings": presented(done.findings)}

    def recent(self) -> list[Finding]:
        """Return the last findings, unless they are old."""
        done = self._done
        return done.findings if done is not None and time.monotonic() - done.began < _RECENT else []

    def fix(self, action: str, subject: str, *, anew: bool) -> Fix:
        """Return a fix that is offered, `anew` by an examination that is made now; there is no other."""
        done = self._examined(time.monotonic()) if anew else self._done
        found = offered(done.findings if done is not None else (), action, subject)
        if found is None:
            raise SettingsError(f"no finding has the fix {action!r} of {subject!r}", hint="examine again")
        return found

    def forget(self) -> None:
        with self._lock:
            self._done = None

    def _examined(self, since: float) -> _Examined:
        with self._lock:
            if self._done is None or self._done.began < since:
                began = time.monotonic()
                system, probes = self._examine()
                self._done = _Examined(began, *masked(system, diagnose(system, probes), self._masks))
            return self._done


def presented(findings: Sequence[Finding]) -> list[JsonObject]:
    """Return findings as the page has them."""
    return [presentable(asdict(each)) for each in findings]


def apply_fix(fix: Fix, settings: Settings, declared: Declared) -> str:
    """Carry a fix out; it is written down where it is done."""
    return carry_out(fix, settings, declared)
