"""Moves a consumer group to another place in a topic."""

from dataclasses import asdict, dataclass
from datetime import UTC, datetime

from penstock.control.action import Outcome
from penstock.errors import ConfigurationError
from penstock.log import Groups, Position, from_beginning, from_end, from_offsets, from_time
from penstock.settings import Settings


@dataclass(frozen=True)
class GroupReset:
    """A group is moved to `to`: beginning, end, a time, or offsets as 0=17,1=4."""

    group: str
    topic: str
    to: str

    name = "group.reset"

    @property
    def subject(self) -> str:
        return f"{self.group} in {self.topic} to {self.to}"

    def preview(self, settings: Settings) -> Outcome:
        return self._moved(settings, dry_run=True)

    def act(self, settings: Settings) -> Outcome:
        return self._moved(settings, dry_run=False)

    def _moved(self, settings: Settings, *, dry_run: bool) -> Outcome:
        moves = Groups(settings).reset(self.group, self.topic, position(self.to), dry_run=dry_run)
        rows = tuple(asdict(each) | {"events": _again(each.before, each.after)} for each in moves)
        again = sum(each["events"] for each in rows)
        verb = "would be moved" if dry_run else "were moved"
        read = f"{again:,} events are read again" if again >= 0 else f"{-again:,} events are skipped"
        return Outcome(f"{len(rows)} partitions {verb}; {read}", rows)


def position(text: str) -> Position:
    """Return the position of a text.

    >>> position("0=17,1=4").offsets[1]
    4
    """
    if text in ("beginning", "end"):
        return from_beginning() if text == "beginning" else from_end()
    try:
        if "=" in text:
            pairs = (pair.split("=") for pair in text.split(","))
            return from_offsets({int(partition): int(offset) for partition, offset in pairs})
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise ConfigurationError(
            f"{text!r} is not a position", hint="write beginning, end, 2026-01-31T12:00:00Z or 0=17,1=4"
        ) from error
    return from_time(moment if moment.tzinfo else moment.replace(tzinfo=UTC))


def _again(before: int | None, after: int) -> int:
    return 0 if before is None else before - after
