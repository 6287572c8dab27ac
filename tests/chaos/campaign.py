"""A campaign: faults by a seeded schedule, a record of what landed, and verifications in between."""

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from pyspark.sql import SparkSession

from penstock.pipeline import Verification, verify
from penstock.testing import wait_until_caught_up
from tests.chaos.faults import KINDS, Landed
from tests.chaos.shop import shop
from tests.chaos.world import World, world

Reporter = Callable[[str], None]
PATIENCE = 300.0
LIGHT = ("connections cut", "network delayed", "reply to a commit dropped")  # some of them may pile up


@dataclass
class Record:
    """What happened in a campaign."""

    seed: int
    landed: list[Landed] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)
    verifications: list[list[Verification]] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def counts(self) -> Counter[str]:
        return Counter(each.kind for each in self.landed)

    @property
    def ok(self) -> bool:
        return bool(self.verifications) and all(
            each.ok for verifications in self.verifications for each in verifications
        )

    def save(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self), indent=1))


def run_campaign(
    folder: Path,
    spark: SparkSession,
    seed: int,
    *,
    faults: int | None = None,
    kinds: Sequence[str] = (),
    only: Sequence[str] = (),
    check_every: int = 25,
    report: Reporter = print,
) -> Record:
    """Let faults of chosen kinds happen in turn, or so many by chance, of all or `only` some; then verify."""
    record, began = Record(seed), time.monotonic()
    with world(folder, seed) as found:
        found.driver.start()
        assert found.await_progress(PATIENCE), "the pipeline did not start"
        for kind in (
            _tried(kinds, record) if kinds else _by_chance(found, record, faults or 0, only or list(KINDS))
        ):
            _happen(found, kind, record, report)
            if len(record.landed) // check_every > len(record.verifications):
                record.verifications.append(_check(found, spark, report))
        record.verifications.append(_check(found, spark, report))
        assert found.driver.stop() == 0
    record.seconds = time.monotonic() - began
    return record


def _tried(kinds: Sequence[str], record: Record) -> Iterator[str]:
    """Yield kinds in turn, each up to three times, until it has found something to hurt."""
    for kind in kinds:
        landed = len(record.landed)
        for _ in range(3):
            if len(record.landed) == landed:
                yield kind


def _by_chance(found: World, record: Record, faults: int, names: Sequence[str]) -> Iterator[str]:
    """Yield kinds until enough faults have landed; one that finds nothing to hurt is drawn again."""
    for _ in range(3 * faults):
        if len(record.landed) >= faults:
            return
        yield found.random.choices(names, [KINDS[name][0] for name in names])[0]


def _happen(found: World, kind: str, record: Record, report: Reporter) -> None:
    landed = KINDS[kind][1](found)
    if landed is None:
        record.missed.append(kind)
        return
    record.landed.append(landed)
    refused = f"; refused: {landed.loud}" if landed.loud else ""
    report(f"{len(record.landed):3} {landed.kind}: {landed.detail}{refused}")
    if not found.driver.alive:
        raise AssertionError(f"the driver has ended after {landed}: {found.driver.last_words()}")
    if landed.kind not in LIGHT or len(record.landed) % 3 == 0:
        message = f"no progress after {landed}: "
        assert found.await_progress(PATIENCE), message + found.driver.last_words()


def _check(found: World, spark: SparkSession, report: Reporter) -> list[Verification]:
    """Wait until the flows have caught up, while nothing new is sent, and compare with the log."""
    found.pause()
    try:
        wait_until_caught_up(shop, found.direct, PATIENCE)
        verifications = verify(shop, found.direct, spark)
    finally:
        found.resume()
    for each in verifications:
        report(
            f"    {each.flow}: {each.read} read, {each.found} of {each.expected} found, "
            f"{each.missing} missing, {each.repeated} repeated, {each.unexpected} unexpected {each.examples}"
        )
    return verifications
