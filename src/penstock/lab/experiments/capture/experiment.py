"""Experiment 5: a row changes in PostgreSQL; three copies follow by capture, a fourth by dual writes."""

from dataclasses import dataclass
from pathlib import Path

from penstock.lab.control import Button, Slider
from penstock.lab.crew import Crew
from penstock.lab.experiment import Experiment
from penstock.lab.experiments.capture.comparison import Comparison
from penstock.lab.experiments.capture.copies import CacheCopy, Copy, IndexCopy, LakeCopy
from penstock.lab.experiments.capture.feed import Feed
from penstock.lab.experiments.capture.follower import Follower
from penstock.lab.experiments.capture.items import COUNT, Items
from penstock.lab.experiments.capture.writers import Race, Tally, Writer
from penstock.lab.own_services import OwnServices
from penstock.lab.run import Run
from penstock.local import installed
from penstock.settings import Secret

_TICK = 0.25
_FIRST = ("a", "b")


@dataclass
class _Scene:
    """All that is at work in a run."""

    items: Items
    followers: list[Follower]
    writers: list[Writer]
    own: CacheCopy | None
    tally: Tally
    next_row: int = 0


_CODE = """
$ penstock capture add shop --tables public.items
$ penstock capture run shop &

items = Table("shop.public.items", Item, key="id", format="debezium-json")
copies = Pipeline("copies")


@copies.flow(reads={"items": items}, writes=SearchIndex("shop/index", key="id", text="name"))
def index(items):
    return items.select("id", "name", "price", "_deleted", "_source")


@copies.flow(reads={"items": items}, writes=RedisHashes("item", key="id"))
def cache(items):
    return items.select("id", "name", "price", "_deleted", "_source")


@copies.flow(reads={"items": items}, writes=LakeTable("shop/lake", key="id", write="upsert"))
def lake(items):
    return items.select("id", "name", "price", "_deleted", "_source")
"""


def work(run: Run) -> None:
    """Run it until it is over."""
    crew = Crew(run.closing)
    scene = _prepared(run, crew)
    while True:
        crew.check()
        _press(run, scene)
        _show(run, scene)
        run.rest(_TICK)


def _prepared(run: Run, crew: Crew) -> _Scene:
    """Make table, capture and copies; what is made is removed in the opposite order."""
    schema = run.schema()
    items = Items(run.settings, schema)
    run.cleanup.callback(items.close)
    items.create()
    run.show(rows=COUNT, changes=0, table=[1] * COUNT)
    redis = _redis(run)
    run.show(redis="yes" if redis else "redis-server is not installed: no cache, and no dual writes to it")
    feed = Feed(run, items.table)
    folder = run.folder()
    own = _cache(run, redis, "own") if redis else None
    if own is not None:
        for number, (version, _) in items.versions().items():
            own.put(number, version, "")
    run.cleanup.callback(crew.close)
    feed.start(crew)
    followers = _followers(run, feed.topic, folder, redis)
    for each in followers:
        crew.start(each.name, each.work)
    tally = Tally()
    writers = [Writer(run, name, schema, redis, tally) for name in _FIRST]
    for writer, name in zip(writers, _FIRST, strict=True):
        crew.start(name, writer.work)
    run.report(f"the capture brings {COUNT} rows and every change to {feed.topic}")
    return _Scene(items, followers, writers, own, tally)


def _redis(run: Run) -> Secret | None:
    """The platform's Redis, or one of the experiment's own; None where none is installed."""
    if "redis" in run.settings.connections:
        return run.settings.url("redis")
    if not installed(("redis",)):
        return None
    return OwnServices(run, ("redis",)).start().url("redis")


def _cache(run: Run, redis: Secret, name: str) -> CacheCopy:
    cache = CacheCopy(redis, run.name(name))
    run.cleanup.callback(cache.close)
    if "redis" in run.settings.connections:  # one of the run's own has ended by then
        run.cleanup.callback(cache.remove)
    return cache


def _followers(run: Run, topic: str, folder: Path, redis: Secret | None) -> list[Follower]:
    copies: dict[str, Copy] = {"index": IndexCopy(folder / "index")}
    if redis is not None:
        _cache(run, redis, "cache")  # which removes the rows at the end
        copies["cache"] = CacheCopy(redis, run.name("cache"))
    copies["lake"] = LakeCopy(folder / "lake")
    pauses = {"lake": lambda: run.value("lake")}  # small files would be many; the others wait for nothing
    return [Follower(run, name, topic, copy, pauses.get(name, lambda: 0.0)) for name, copy in copies.items()]


def _press(run: Run, scene: _Scene) -> None:
    first, second = scene.writers
    for _ in range(run.pressed("change")):
        first.wanted.append(scene.next_row)
        scene.next_row = (scene.next_row + 1) % COUNT
    if run.pressed("fail"):
        first.fails_next.set()
        first.wanted.append(scene.next_row)
        scene.next_row = (scene.next_row + 1) % COUNT
    if run.pressed("race"):
        race = Race(scene.next_row)
        first.race, second.race = (race, True), (race, False)
        scene.next_row = (scene.next_row + 1) % COUNT


def _show(run: Run, scene: _Scene) -> None:
    """Read the table and every copy, by the reader of each, and compare."""
    copies: dict[str, CacheCopy | Copy] = {each.name: each.copy for each in scene.followers}
    if scene.own is not None:
        copies["own"] = scene.own
    found = {name: copy.versions() for name, copy in copies.items()}
    table = scene.items.versions()
    figures: dict[str, object] = {"table": [table[row][0] for row in range(COUNT)]}
    for name, versions in found.items():
        compared = Comparison.of(table, versions)
        figures |= compared.figures(name)
        figures[f"{name}_rows"] = [
            [versions.get(row, 0), round(compared.differing.get(row, 0.0), 1)] for row in range(COUNT)
        ]
    for each in scene.followers:
        figures |= each.figures()
    tally = scene.tally
    run.show(**figures, changes=tally.changes, failed=tally.failed, crossed=tally.crossed)


EXPERIMENT = Experiment(
    "capture",
    "Capture",
    "One row changes in PostgreSQL. When do the search index, the cache and the lake have it, and what "
    "becomes of a cache that the application writes by itself?",
    watch=(
        "Press “Change one row”: the change leaves the table once and arrives in three copies, each with a "
        "lag of its own. The lake is behind by its pause between commits, and not by the capture.",
        "Press “Let the second write fail”: the table has the new version, the application's own cache never "
        "gets it. The three captured copies do.",
        "Press “Let two writers race”: both writes succeed, in the other order in the cache. It keeps the "
        "older version, and no error says so.",
        "Set the rate to 0 and wait a moment: the captured copies are equal to the table, row by row. What "
        "is red in the application's own cache stays red until the row happens to be written again.",
    ),
    explained=(
        "Change data capture (CDC) reads PostgreSQL's own log. A change is in that log if, and only if, its "
        "transaction was committed, and in the order of the commits. Capture writes each change to a topic "
        "exactly once; every copy reads the topic at its own pace and keeps its position. A copy can be "
        "late. It can't be wrong for good: it catches up.",
        "With dual writes the application writes the table and then the cache. These are two systems without "
        "a common transaction. If the process or the network fails between the two, one has the change and "
        "the other one lacks it (partial failure). If two writers change one row, the order of their second "
        "writes need not be that of their commits (reordering). The longer the pause between the two writes, "
        "the more often this happens by itself.",
        "Here plain consumers feed the copies, because Spark needs half a minute to start. The index is "
        "written by the code of the target SearchIndex, rows and ledger entry in one commit. In your own "
        "pipeline three flows do this work, exactly once and through crashes.",
        "The lag is the time from PostgreSQL's commit, as the record states it, until a reader of the copy "
        "sees the change. “Differs” is counted by reading the table and every copy, and comparing the "
        "versions of all rows.",
    ),
    code=_CODE.strip(),
    page="capture.md",
    work=work,
    controls=(
        Slider("rate", "Changes a second", 0, 20, 1, 4, is_live=True),
        Slider("pause", "Pause between the two writes, at most", 0, 300, 10, 20, "ms", is_live=True),
        Slider("lake", "Pause between two commits of the lake", 0.2, 5, 0.2, 1, "s", is_live=True),
        Button("change", "Change one row"),
        Button("fail", "Let the second write fail", is_danger=True),
        Button("race", "Let two writers race", is_danger=True),
    ),
    services=("kafka", "postgres"),
)
