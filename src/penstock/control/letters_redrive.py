"""Sends the dead letters of a topic to it again."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from penstock.control.action import Outcome
from penstock.errors import DataError
from penstock.log import Broker, redrive
from penstock.log.cursor import Cursor
from penstock.log.dead_letters import DeadLetter
from penstock.log.identity import TopicIdentity
from penstock.log.redrive import GROUP, WaitingLetters
from penstock.log.topic import DEAD_LETTERS
from penstock.settings import Settings

_SECONDS = 5.0  # that a preview reads: there may be millions
Decode = Callable[[bytes | None], object]


@dataclass(frozen=True)
class LettersRedrive:
    """All dead letters that wait are sent again; those that `decode` still refuses stay dead letters."""

    topic: str
    decode: Decode | None = None

    name = "topic.redrive"

    @property
    def subject(self) -> str:
        return self.topic

    def preview(self, settings: Settings) -> Outcome:
        """Read the letters that wait, and say how many can be decoded now."""
        source, group = self.topic + DEAD_LETTERS, GROUP + self.topic
        if not Broker(settings).exists(source):
            Broker(settings).topic(self.topic)  # or say that there is none
            return Outcome("no dead letters wait")
        sent = dead = 0
        until = time.monotonic() + _SECONDS
        with Cursor(source, settings, group=group, archived=True) as cursor:
            waiting = WaitingLetters(cursor, TopicIdentity(source, settings, group))
            for messages, position in waiting.chunks():
                alive = sum(self._is_alive(DeadLetter.from_message(each)) for each in messages)
                sent, dead = sent + alive, dead + len(messages) - alive
                if time.monotonic() > until and position < waiting.end:
                    return Outcome(f"{_summary(sent, dead)}, of the first {sent + dead:,}")
        return Outcome(_summary(sent, dead))

    def act(self, settings: Settings) -> Outcome:
        done = redrive(self.topic, settings, readable=self.decode)
        repeated = f", {done.repeated:,} duplicates were left out" if done.repeated else ""
        return Outcome(f"{done.sent:,} sent again, {done.still_dead:,} still dead{repeated}")

    def _is_alive(self, letter: DeadLetter) -> bool:
        try:
            if self.decode is not None:
                self.decode(letter.value)
        except DataError:
            return False
        return True


def _summary(sent: int, dead: int) -> str:
    return f"{sent:,} would be sent again, {dead:,} still can't be decoded"
