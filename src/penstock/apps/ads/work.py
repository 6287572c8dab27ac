"""The ads application in its demo: impressions and clicks in, outcomes and click-through out."""

import time
from collections import Counter
from collections.abc import Iterable
from datetime import timedelta
from math import inf
from typing import Self

import psycopg

from penstock.apps.ads.events import TOPICS, Click, Impression, Outcome, clicks, impressions, outcomes
from penstock.apps.ads.expected import Key, Value, click_through_of
from penstock.apps.ads.pipeline import TABLE
from penstock.apps.ads.traffic import Traffic, numbered
from penstock.apps.demo import Comparison, Figures, Report, Work
from penstock.apps.demo.follower import Follower
from penstock.apps.demo.latency import latency_figures
from penstock.log import Broker, Producer, apply
from penstock.settings import Settings

CLOSING = "closing"  # a campaign of its own: its impressions move the watermarks past all others
_RECENT, _PROMPT = 20, 3.0  # outcomes, and seconds until a click has its match, when all is warm
_ROWS = f"SELECT campaign, start, impressions, clicked, clicks FROM {TABLE} WHERE campaign <> %s"  # noqa: S608


class Ads(Work):
    """Sends impressions and clicks, and compares the outcome of each, and the counts of campaigns."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.traffic = Traffic()
        self.sent: dict[str, float] = {}  # impressions and clicks, and when

    def __enter__(self) -> Self:
        apply(TOPICS, Broker(self.settings))
        self.producer = self.opened.enter_context(Producer(self.settings))
        self.outcomes = self.opened.enter_context(Follower(outcomes, self.settings))
        return self

    def send(self, count: int) -> None:
        self._send(self.traffic.next() for _ in range(count))

    def finish(self) -> None:
        """Close every window: a last impression with a click, three hours later, in every partition."""
        self._send(self.traffic.rest())
        later = max(at for _, at in self.traffic.impressions.values()) + timedelta(hours=3)
        for number in range(impressions.partitions):
            shown = Impression(f"{CLOSING}-{number}", CLOSING, later)
            self.producer.send(impressions, shown, partition=number)
            self.producer.send(clicks, Click(shown.impression, shown.id, later), partition=number)
        self.producer.flush()

    def _send(self, events: Iterable[Impression | Click]) -> None:
        for event in events:
            if isinstance(event, Impression):
                self.producer.send(impressions, event)
                self.sent[event.impression] = time.time()
            else:
                self.producer.send(clicks, event)
                self.sent.setdefault(event.click, time.time())

    def has_begun(self) -> bool:
        return len(self.outcomes) > 0

    def keeps_up(self) -> bool:
        recent = [heard - self._complete(outcome) for heard, outcome in self.outcomes.recent(_RECENT)]
        took = [seconds for seconds in recent if seconds > 0]
        return bool(took) and max(took) < _PROMPT

    def is_settled(self) -> bool:
        return not any(compared.problems for compared in self._compared())

    def figures(self) -> Figures:
        kinds = Counter(outcome.click is None for outcome in self.outcomes.events())
        return [
            ("impressions", f"{len(self.traffic.impressions):,}", f"{len(self.traffic.clicks):,} clicks"),
            ("matched", f"{kinds[False]:,}", f"{kinds[True]:,} impressions are over without a click"),
        ]

    def report(self) -> Report:
        by_outcome, by_campaign = self._compared()
        return Report(
            f"{by_outcome.due:,} outcomes, and {by_campaign.due:,} counts of campaigns, are right",
            [
                *self._counted(),
                *by_outcome.figures("outcomes"),
                *by_campaign.figures("click-through"),
                *self._latencies(),
            ],
            [*by_outcome.problems, *by_campaign.problems],
        )

    def _complete(self, outcome: Outcome) -> float:
        """When the later of an impression and its click was sent; never, of one without a click."""
        return max(self.sent.get(outcome.click or "", inf), self.sent.get(outcome.impression, inf))

    def _compared(self) -> tuple[Comparison, Comparison]:
        due, found = self.traffic.outcomes(), [each for each in self.outcomes.events() if not _closes(each)]
        keys = numbered((outcome.impression, outcome.click) for outcome in found)
        results = zip(keys, ((outcome.campaign, outcome.at) for outcome in found), strict=True)
        return Comparison.of(due, results), Comparison.of(click_through_of(due), self._rows())

    def _rows(self) -> list[tuple[Key, Value]]:
        with psycopg.connect(self.settings.dsn().value) as connection:
            return [
                ((name, start), tuple(rest)) for name, start, *rest in connection.execute(_ROWS, [CLOSING])
            ]

    def _counted(self) -> Figures:
        traffic, kinds = self.traffic, Counter(outcome.click is None for outcome in self.outcomes.events())
        shown, clicked = len(traffic.impressions), len(traffic.clicks)
        return [
            ("impressions", f"{shown:,}", f"{kinds[True]:,} of them without a click within the hour"),
            ("clicks", f"{clicked:,}", f"{traffic.early:,} of them arrived before their impression"),
        ]

    def _latencies(self) -> Figures:
        took = list[float]()
        for heard, outcome in self.outcomes.heard():
            sent = self._complete(outcome)
            if self.is_steady(sent):
                took.append(heard - sent)
        return latency_figures(took, "from a click and its impression to the match, before the kill")


def _closes(outcome: Outcome) -> bool:
    return outcome.campaign == CLOSING
