"""The demo of page views: a site's traffic, phones that come late, and results beside the truth."""

from datetime import UTC, datetime, timedelta
from typing import Self

from penstock.apps.demo import Figures, Report, Work
from penstock.apps.demo.child import Child
from penstock.apps.demo.follower import Follower
from penstock.apps.pageviews.events import TOPICS, about, live, too_late, views
from penstock.apps.pageviews.outcome import Outcome
from penstock.apps.pageviews.tables import Tables
from penstock.apps.pageviews.traffic import Traffic
from penstock.apps.pageviews.truth import Truth
from penstock.cli.output import milliseconds
from penstock.local.ports import choose
from penstock.log import Broker, Producer, apply

PORT = 8090
HISTORY, A_MINUTE = 12, 200  # minutes before the demo begins, and views in each
LONG_AGO = timedelta(minutes=1)  # they come to the log too late to be of now


class SiteWork(Work):
    """Sends views, follows what is emitted, and knows what was sent."""

    def __enter__(self) -> Self:
        apply(TOPICS, Broker(self.settings))
        self._traffic = Traffic()
        self._page = self._served() if self.plan.serve else ""
        keep = 1 if self.plan.serve else None  # what is served is not compared with the truth
        self._live = self.opened.enter_context(Follower(live, self.settings, keep))
        self._about = self.opened.enter_context(Follower(about, self.settings, keep))
        self._refused = self.opened.enter_context(Follower(too_late, self.settings, keep))
        self._producer = self.opened.enter_context(Producer(self.settings))
        until = datetime.now(UTC) - LONG_AGO
        self._producer.send_all(views, self._traffic.history(until, HISTORY, A_MINUTE))
        return self

    def _served(self) -> str:
        """Let a gateway run beside the flows, and return where the page is."""
        port = str(choose("the gateway", None, [PORT]))
        words = ("gateway", "-m", "penstock.apps.pageviews.page", "--port", port)
        self.processes = (Child("pageviews.gateway", "penstock.cli", words, self.settings),)
        return f"http://127.0.0.1:{port}/pageviews"

    def has_begun(self) -> bool:
        """Whether the first minute of the sketch is over: it comes last."""
        return len(self._about) > 0

    def send(self, count: int) -> None:
        now = datetime.now(UTC)
        self._producer.send_all(views, (self._traffic.next(now) for _ in range(count)))
        if self.plan.serve:
            self._traffic.truth = Truth()

    def finish(self) -> None:
        """Views of three minutes later let all minutes before be over."""
        self._producer.send_all(views, self._traffic.closing(datetime.now(UTC)))
        self._producer.flush()

    def is_settled(self) -> bool:
        return not self._outcome().problems

    def report(self) -> Report:
        return self._outcome().report(self._traffic.sent)

    def _outcome(self) -> Outcome:
        return Outcome(
            self._traffic.truth,
            Tables.read(self.settings.dsn().value),
            self._live.events(),
            self._about.events(),
            self._refused.events(),
            self._delays(),
        )

    def _delays(self) -> list[float]:
        """How long the views of the steady time took to their minute's count."""
        counted = ((heard, row.written.timestamp()) for heard, row in self._live.heard())
        return [heard - came for heard, came in counted if self.is_steady(came)]

    def figures(self) -> Figures:
        late, too_late = self._traffic.truth.late, len(self._traffic.truth.too_late)
        behind = [
            milliseconds(1000 * (heard - row.written.timestamp())) for heard, row in self._live.recent()
        ]
        first = [page for _, row in self._about.recent() for page in row.pages[:1]]
        return [
            ("views", f"{self._traffic.sent:,}", f"{late:,} late, {too_late:,} too late"),
            *(("behind", each, "from a view to its minute's new count") for each in behind),
            *(("most viewed", f"{page.views:,}", f"{page.url}, in a minute") for page in first),
            *([("page", "live", self._page)] if self._page else []),
        ]
