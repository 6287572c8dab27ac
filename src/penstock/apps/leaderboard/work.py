"""The demo of the leaderboard: many players, their games, and every answer compared with the truth."""

import time
from datetime import UTC, datetime
from typing import Self

from penstock.apps.demo import Figures, Report, Work
from penstock.apps.leaderboard.events import TOPICS, games
from penstock.apps.leaderboard.outcome import Answers, Outcome
from penstock.apps.leaderboard.pipeline import BEST
from penstock.apps.leaderboard.traffic import Traffic
from penstock.apps.leaderboard.watch import Watch
from penstock.cli.output import milliseconds
from penstock.log import Broker, Producer, apply
from penstock.registry import Registry

PLAYERS = 100_000
_PROMPT, _LATELY = 5.0, 3.0  # seconds from a game to the best players, of all news of the last few


class GamesWork(Work):
    """Sends games, and watches the best players."""

    def __enter__(self) -> Self:
        apply(TOPICS, Broker(self.settings))
        self._traffic = Traffic(PLAYERS)
        self._dsn = self.settings.dsn().value
        self._watch = self.opened.enter_context(Watch(self._dsn))
        registry = self.opened.enter_context(Registry(self.settings))
        self._producer = self.opened.enter_context(Producer(self.settings, schemas=registry))
        self._producer.send_all(games, self._traffic.first_games(datetime.now(UTC)))
        self._began = time.time()
        return self

    def has_begun(self) -> bool:
        """Whether a game counts that was played after the first ones."""
        return any(moment - seconds > self._began for moment, seconds in self._watch.news[-1:])

    def keeps_up(self) -> bool:
        since = time.time() - _LATELY
        recent = [seconds for moment, seconds in self._watch.news[-BEST:] if moment > since]
        return bool(recent) and max(recent) < _PROMPT

    def send(self, count: int) -> None:
        now = datetime.now(UTC)
        self._producer.send_all(games, (self._traffic.next(now) for _ in range(count)))

    def finish(self) -> None:
        self._producer.flush()

    def is_settled(self) -> bool:
        return not self._outcome().problems

    def figures(self) -> Figures:
        best, news = self._watch.best, self._watch.news[-1:]
        return [
            ("games", f"{self._traffic.sent:,}", f"of {PLAYERS:,} players"),
            *(
                ("behind", milliseconds(1000 * seconds), "from a game to the best players")
                for _, seconds in news
            ),
            *([("best", f"{best[1]:,}", f"points of player {best[0]}")] if best else []),
        ]

    def report(self) -> Report:
        return self._outcome().report()

    def _outcome(self) -> Outcome:
        delays = [seconds for moment, seconds in self._watch.news if self.is_steady(moment - seconds)]
        answers = Answers.read(self._dsn, Outcome.asked(self._traffic))
        return Outcome(self._traffic, answers, delays)
