"""What a group's commits say of it: whether it keeps up, falls behind, stands still or is gone."""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Protocol, TypeVar

from penstock.ops.model import Commit, Judgement

WINDOW = 600.0  # seconds of commits that are looked at
PATIENCE = 60.0  # seconds: nobody is accused of what is younger
KEPT = 5  # commits of a place that are looked at whatever their age, where the window has too few
_ENOUGH = 3  # commits of the window to judge by
_RAREST = 3600.0  # seconds: who commits less often has rested, unless it says how often it does
_ORDER: tuple[Judgement, ...] = (
    "stopped",
    "stalled",
    "rewind",
    "warning",
    "unknown",
    "ok",
)  # the worst first


class Committed(Protocol):
    """A position and when it was committed."""

    @property
    def at(self) -> float: ...
    @property
    def position(self) -> int | None: ...


C = TypeVar("C", bound=Committed)


def judge(
    commits: Sequence[Commit],
    end_now: int,
    now: float,
    *,
    gap: float | None = None,
    has_members: bool = False,
    waiting: float = float("inf"),
    window: float = WINDOW,
    patience: float = PATIENCE,
) -> Judgement:
    """Judge the commits of a group in a partition, the oldest first.

    `gap` is the longest time that is usual between two of them, `waiting` the age of its oldest event.

    >>> judge([Commit(0, 5, 9), Commit(60, 9, 9), Commit(120, 12, 20)], end_now=25, now=125)
    'ok'
    >>> judge([Commit(0, 5, 9), Commit(60, 7, 14), Commit(120, 9, 20)], end_now=25, now=125)
    'warning'

    Whoever had read everything at some time of the window is fine. Otherwise: one that reads again what it
    had read is a `rewind`, one that does not commit for twice as long as usual has `stopped`, one whose
    commits stay where they are has `stalled`, and one that never gets nearer to the end deserves a `warning`.
    Of members that have not committed twice yet nobody can say how often they do: `unknown`.
    """
    seen = looked_at(commits, now, window)
    recent = [each for each in seen if now - each.at <= window]
    if (commits and end_now <= commits[-1].position) or any(each.lag == 0 for each in recent):
        return "ok"
    if any(later.position < earlier.position for earlier, later in pairwise(recent)):
        return "rewind"
    if waiting < patience:
        return "ok"
    gap = longest_gap(seen) if gap is None else gap
    if _is_silent(seen, min(waiting, _since(seen, now)), gap, window, patience):
        return "unknown" if gap is None and has_members else "stopped"
    return _progress(seen, patience, is_enough=len(recent) >= _ENOUGH or len(seen) >= KEPT)


def worst(judgements: Iterable[Judgement]) -> Judgement:
    """Return the judgement of a group by those of its partitions.

    >>> worst(["ok", "stalled", "warning"]), worst([])
    ('stalled', 'ok')
    """
    found = set(judgements)
    return next((each for each in _ORDER if each in found), "ok")


def looked_at(commits: Sequence[C], now: float, window: float = WINDOW) -> Sequence[C]:
    """Return the commits of the window; of whoever commits less often, the last ones."""
    recent = [each for each in commits if now - each.at <= window]
    return recent if len(recent) >= _ENOUGH else commits[-KEPT:]


def longest_gap(commits: Sequence[Committed], every: float | None = None) -> float | None:
    """Return the longest time between two positions, or the one that is said; None if neither is known.

    >>> longest_gap([Commit(0, 5, 9), Commit(30, 7, 9), Commit(600, 7, 9)])
    30
    """
    gaps = [
        min(later.at - earlier.at, _RAREST)
        for earlier, later in pairwise(commits)
        if later.position != earlier.position
    ]
    return max([*gaps, *([] if every is None else [every])], default=None)


def _since(commits: Sequence[Commit], now: float) -> float:
    return now - commits[-1].at if commits else float("inf")


def _is_silent(
    commits: Sequence[Commit], since: float, gap: float | None, window: float, patience: float
) -> bool:
    """Whether nothing was committed for longer than is usual; where that is not known, for a window."""
    if gap is None:
        return since > window or not commits
    return since > max(2 * gap, patience)


def _progress(seen: Sequence[Commit], patience: float, *, is_enough: bool) -> Judgement:
    if not seen or seen[-1].at - seen[0].at < patience or any(each.lag == 0 for each in seen):
        return "ok"  # or too early to say
    if seen[0].position == seen[-1].position:
        return "stalled"
    return "warning" if is_enough and _never_falls(seen) else "ok"


def _never_falls(seen: Sequence[Commit]) -> bool:
    return all(later.lag >= earlier.lag for earlier, later in pairwise(seen))
