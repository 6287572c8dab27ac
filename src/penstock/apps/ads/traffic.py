"""Impressions and clicks in the order of their arrival, of which every outcome is known."""

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from heapq import heappop, heappush
from random import Random

from penstock.apps.ads.events import Click, Impression

START = datetime(2026, 1, 1, tzinfo=UTC)
EVERY = timedelta(milliseconds=400)  # between two impressions
HOUR = timedelta(hours=1)
CAMPAIGNS = {f"campaign-{number:02}": 0.01 + 0.01 * number for number in range(8)}  # and how often each works
Shown = tuple[str, datetime]  # a campaign, and when it was shown
Match = tuple[str, str | None]  # an impression, and a click or none
Outcomes = dict[tuple[str, str | None, int], Shown]  # of a match that is there twice, which one it is


class Traffic:
    """An endless stream of impressions and clicks; `outcomes` are due for what has been sent so far.

    Both arrive up to four minutes late, so that one click in ten arrives before its impression. Some clicks
    come after the hour, some exactly at its end, some twice, and some impressions are clicked twice.
    """

    def __init__(self, seed: int = 1) -> None:
        self.impressions: dict[str, Shown] = {}
        self.clicks: list[Click] = []
        self.early = 0  # clicks that arrived before their impression
        self._random = Random(seed)  # noqa: S311
        self._waiting: list[tuple[datetime, int, Impression | Click]] = []
        self._shown, self._made = 0, 0

    def next(self) -> Impression | Click:
        """Return what arrives next."""
        while not self._waiting or self._waiting[0][0] >= START + self._shown * EVERY:
            self._show()
        return self._sent(heappop(self._waiting)[2])

    def rest(self) -> Iterator[Impression | Click]:
        """Yield what is still on its way; no more ads are shown."""
        while self._waiting:
            yield self._sent(heappop(self._waiting)[2])

    def outcomes(self) -> Outcomes:
        """Return what is due: a row for each impression and each of its clicks, or one without a click."""
        found = [
            (click.impression, click.click)
            for click in self.clicks
            if click.at <= self.impressions[click.impression][1] + HOUR
        ]
        clicked = {impression for impression, _ in found}
        alone = [(impression, None) for impression in self.impressions if impression not in clicked]
        return {key: self.impressions[key[0]] for key in numbered([*found, *alone])}

    def _sent(self, event: Impression | Click) -> Impression | Click:
        if isinstance(event, Impression):
            self.impressions[event.impression] = event.campaign, event.at
        else:
            self.early += event.impression not in self.impressions
            self.clicks.append(event)
        return event

    def _show(self) -> None:
        random, at = self._random, START + self._shown * EVERY
        campaign, often = random.choice([*CAMPAIGNS.items()])
        shown = Impression(f"i{self._shown}", campaign, at, id=f"i{self._shown}")
        self._shown += 1
        self._arrive(shown)
        if random.random() < often:
            self._click(shown)
            if random.random() < 0.1:
                self._click(shown)

    def _click(self, shown: Impression) -> None:
        random, number = self._random, self._made
        seconds = random.choice((random.uniform(3601, 7200), 3600, *[random.expovariate(1 / 300)] * 18))
        made = Click(shown.impression, f"c{number}", shown.at + timedelta(seconds=min(seconds, 7200)))
        for _ in range(2 if random.random() < 0.05 else 1):  # some browsers send it once more
            self._arrive(made)

    def _arrive(self, event: Impression | Click) -> None:
        late = timedelta(seconds=self._random.choice((0, 1, 5, 240)) * self._random.random())
        self._made += 1
        heappush(self._waiting, (event.at + late, self._made, event))


def numbered(matches: Iterable[Match]) -> Iterator[tuple[str, str | None, int]]:
    """Number those that are there more than once: a click that was sent twice is matched twice."""
    seen: Counter[Match] = Counter()
    for match in matches:
        seen[match] += 1
        yield *match, seen[match]
