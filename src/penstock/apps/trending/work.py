"""The demo of trending: an hour of posts, then more as they come, with trends planted among them."""

from datetime import UTC, datetime, timedelta
from math import inf
from typing import Self

from penstock.apps.demo import Figures, Report, Work
from penstock.apps.demo.child import Child
from penstock.apps.demo.follower import Follower
from penstock.apps.trending.events import TOPICS, batch_runs, hopping_trends, posts, tumbling_trends
from penstock.apps.trending.outcome import Outcome, delay, seen
from penstock.apps.trending.pipeline import COUNT
from penstock.apps.trending.traffic import Planted, Traffic
from penstock.log import Broker, Producer, apply

HISTORY = timedelta(hours=1)
_APART, _SERVED = 10.0, 60.0  # seconds between two trends; and while it is served


class PostsWork(Work):
    """Sends posts, plants trends, and follows the rankings of the three ways."""

    def __enter__(self) -> Self:
        apply(TOPICS, Broker(self.settings))
        self._traffic = Traffic()
        self._due = list[float]()  # when trends begin
        self._found = set[Planted]()
        keep = COUNT if self.plan.serve else None
        self._hopping = self.opened.enter_context(Follower(hopping_trends, self.settings, keep))
        self._tumbling = self.opened.enter_context(Follower(tumbling_trends, self.settings, keep))
        self._batch = self.opened.enter_context(Follower(batch_runs, self.settings, keep))
        self._producer = self.opened.enter_context(Producer(self.settings))
        self._now = datetime.now(UTC)
        self._producer.send_all(posts, self._traffic.history(self._now, HISTORY, self.plan.rate))
        self.processes = (Child("trending.batch", "penstock.apps.trending.batch", (), self.settings),)
        return self

    def begin(self, stage: str) -> None:
        """Two trends begin in the steady time, and one when everything is killed."""
        if stage == "steady":
            self._due = [self.began[stage], self.began[stage] + _APART]
        elif stage == "kill":
            self._due.append(self.began[stage])

    def has_begun(self) -> bool:
        """Whether there are rankings of the posts that come now, also by the batch."""
        return len(self._batch) > 0 and any(row.end > self._now for _, row in self._hopping.recent())

    def send(self, count: int) -> None:
        now = datetime.now(UTC)
        while self._due and self._due[0] <= now.timestamp():
            self._due.pop(0)
            self._traffic.plant(now)
        self._producer.send_all(posts, (self._traffic.next(now) for _ in range(count)))
        if self.plan.serve:  # nothing is compared with the truth, and trends don't end
            self._traffic.posts.clear()
            self._due = self._due or [now.timestamp() + _SERVED]

    def finish(self) -> None:
        """Posts of a minute later let all windows before be over."""
        self._producer.send_all(posts, self._traffic.closing(datetime.now(UTC)))
        self._producer.flush()

    def is_settled(self) -> bool:
        return not self._outcome().problems

    def figures(self) -> Figures:
        ranked = self._hopping.recent(COUNT)
        self._found |= {each for each in self._traffic.planted if delay(each, seen(ranked)) is not None}
        first = [row for _, row in ranked if row.place == 1][-1:]
        return [
            ("posts", f"{self._traffic.sent:,}", "an hour's, and those of now"),
            *(("rising most", f"{row.growth:.1f} ×", f"#{row.tag}: {row.uses:,} uses") for row in first),
            ("trends", f"{len(self._found):,}", f"found of {len(self._traffic.planted):,} planted"),
        ]

    def report(self) -> Report:
        return self._outcome().report()

    def _outcome(self) -> Outcome:
        return Outcome(
            self._traffic.posts,
            self._traffic.planted,
            self._hopping.heard(),
            self._tumbling.heard(),
            self._batch.heard(),
            self.began.get("steady", inf),
            self.began.get("kill", inf),
        )
