"""Dead letters that wait: events which nobody could decode, work on or deliver."""

from collections.abc import Iterator

from penstock.log.topic import DEAD_LETTERS
from penstock.ops.doctor.finding import Finding
from penstock.ops.doctor.probes import Probes
from penstock.ops.doctor.spelling import spelled
from penstock.ops.model import DeadLetterStatus, System

ID = "letters.waiting"


def dead_letters(system: System, probes: Probes) -> Iterator[Finding]:  # noqa: ARG001
    """Find topics with dead letters that nobody has redriven."""
    for letters in system.dead_letters:
        if letters.waiting:
            age = system.at - letters.newest if letters.newest else 0.0
            yield Finding(
                ID,
                "warning",
                letters.source,
                f"{letters.waiting:,} dead letters wait, the newest of {spelled(max(0.0, age))} ago"
                + (f": {letters.reason}" if letters.reason else ""),
                {
                    "letters": letters.waiting,
                    "kept": letters.kept,
                    "newest_seconds_ago": round(age, 1),
                    "reason": letters.reason,
                    "topic": letters.topic,
                },
                letters.reason or "they could not be decoded, worked on or delivered",
                f"mend what was wrong, then send them again: {_command(letters)}",
            )


def _command(letters: DeadLetterStatus) -> str:
    if letters.topic.endswith(DEAD_LETTERS):
        return f"`penstock topics redrive {letters.source}`"
    return "redrive_webhook of penstock.targets.webhook, with the flow's webhook"
