"""The delay and the idle time that follow from how late events come."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from penstock.errors import SettingsError
from penstock.ops.lateness.ladder import LADDER, rounded_up, spelled
from penstock.ops.lateness.measuring import Partition

_LEAST_IDLE = timedelta(seconds=10)
_TIMES = 2  # the longest usual pause


@dataclass(frozen=True)
class Advice:
    """What to write into a watermark, and why.

    `late` is the share of late events with the delay; `quiet` are partitions that were silent for longer than
    `idle` when the last event of all came; `empty` have no events. `needs_future` says that events dated far
    ahead would drag the watermark.
    """

    delay: timedelta
    late: float
    idle: timedelta
    quiet: tuple[int, ...]
    empty: tuple[int, ...]
    needs_future: bool
    shares: tuple[float, ...]

    @property
    def watermark(self) -> str:
        """The watermark as it is written in a flow."""
        future = ', future="1 hour"' if self.needs_future else ""
        return f'Watermark("{spelled(self.delay)}", idle="{spelled(self.idle)}"{future})'


def advise(partitions: Sequence[Partition], share: float) -> Advice:
    """Return the least delay of the ladder with which no more than a share of all events is late.

    >>> advise([Partition(0, 10, late=(3, 1) + (0,) * 30)], share=0.1).delay
    datetime.timedelta(microseconds=100000)
    """
    if not 0 <= share < 1:
        raise SettingsError(f"--share is {share}, expected from 0 to less than 1", hint="0.001 is 0.1 %")
    shares = shares_of(partitions)
    worst = max((each.worst for each in partitions), default=timedelta(0))
    steps = (place for place, late in enumerate(shares) if late <= share)
    place = next(steps, None)
    idle = _idle(partitions)
    return Advice(
        delay=rounded_up(worst) if place is None else LADDER[place],
        late=0.0 if place is None else shares[place],
        idle=idle,
        quiet=_quiet(partitions, idle),
        empty=tuple(each.number for each in partitions if each.is_empty),
        needs_future=any(each.ahead for each in partitions),
        shares=shares,
    )


def shares_of(partitions: Sequence[Partition]) -> tuple[float, ...]:
    """Return the share of late events with each delay of the ladder."""
    events = sum(each.events for each in partitions) or 1
    return tuple(sum(late) / events for late in zip(*(each.late for each in partitions), strict=True)) or (
        0.0,
    ) * len(LADDER)


def _idle(partitions: Sequence[Partition]) -> timedelta:
    """Twice the pause that hardly ever is exceeded: a shorter one would leave out who is only slow."""
    usual = max((each.gaps[0] for each in partitions), default=timedelta(0))
    return max(_LEAST_IDLE, rounded_up(usual * _TIMES))


def _quiet(partitions: Sequence[Partition], idle: timedelta) -> tuple[int, ...]:
    """Partitions that others have left behind."""
    last = max((each.last for each in partitions if each.last is not None), default=None)
    return tuple(
        each.number
        for each in partitions
        if last is not None and each.last is not None and last - each.last > idle
    )
