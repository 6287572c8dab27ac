"""Draws the timelines of the docs from real runs: `python docs/pictures/draw.py`.

Time of the events goes to the right, the order in which things happen goes down: a dot is an event that came,
a bar is a result that was emitted, the dashed line is the watermark.
"""

import html
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from penstock.process import dedup, joins, keyed, ranking, session, sketches, windows
from penstock.process.windows import Late, agg
from penstock.testing import Feed

HERE = Path(__file__).parent
START = datetime(2026, 1, 1, tzinfo=UTC)
SCHEMA = "key string, at timestamp, n long"
DELAY = 5  # seconds, of the watermarks below
LINE, LEFT, WIDTH = 26, 130, 760
COLOURS = {
    "event": "#2f6fb2",
    "on time": "#3c8d5a",
    "late": "#8a5fbf",
    "corrected": "#d98a1f",
    "retracted": "#9a9a9a",
    "side output": "#c0392b",
    "left out": "#b8b8b8",
    "passed": "#3c8d5a",
}
Step = list[float] | float  # the times of a batch of events, or a time to which the watermark is moved


@dataclass
class Timeline:
    """What happened, line by line."""

    title: str
    until: float
    lines: list[tuple[str, str, float, float, str]] = field(
        default_factory=list
    )  # what, label, from, to, colour
    watermark: list[tuple[int, float]] = field(default_factory=list)

    def event(self, time: float, fate: str) -> None:
        self.lines.append(
            ("dot", f"{time:g} s {'came' if fate == 'event' else fate}", time, time, COLOURS[fate])
        )

    def result(self, row: Row) -> None:
        start, end = (seconds(row[name]) for name in ("start", "end"))
        label = row.label if "label" in row else f"{row.kind}: {row.rows}"
        self.lines.append(("bar", label, start, end, COLOURS[row.kind]))

    def moved(self, time: float) -> None:
        self.watermark.append((len(self.lines), time))

    def svg(self) -> str:
        height = 70 + LINE * len(self.lines)
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LEFT + WIDTH + 20} {height}" '
            'font-family="system-ui, sans-serif" font-size="13">',
            '<rect width="100%" height="100%" fill="#ffffff"/>',
            f'<text x="12" y="22" font-weight="600">{self.title}</text>',
            *self._axis(height),
            *self._watermark(height),
            *(self._line(number, *line) for number, line in enumerate(self.lines)),
            "</svg>",
        ]
        return "\n".join(parts)

    def _x(self, time: float) -> float:
        return LEFT + WIDTH * min(max(time, 0), self.until) / self.until

    def _axis(self, height: int) -> Iterable[str]:
        for tick in range(0, int(self.until) + 1, 10):
            x = self._x(tick)
            yield f'<line x1="{x}" x2="{x}" y1="44" y2="{height - 8}" stroke="#ececec"/>'
            yield f'<text x="{x}" y="40" text-anchor="middle" fill="#777">{tick} s</text>'

    def _watermark(self, height: int) -> Iterable[str]:
        if not self.watermark:
            return
        points, last = [], self._x(0)
        for line, time in self.watermark:
            y = 50 + LINE * line
            points += [f"{last},{y}", f"{self._x(time)},{y}"]
            last = self._x(time)
        points.append(f"{last},{height - 8}")
        yield f'<polyline points="{" ".join(points)}" fill="none" stroke="#8e44ad" stroke-dasharray="5 4"/>'
        yield f'<text x="{last - 4}" y="{height - 12}" text-anchor="end" fill="#8e44ad">watermark</text>'

    def _line(self, number: int, what: str, label: str, start: float, end: float, colour: str) -> str:
        y = 50 + LINE * number + LINE / 2
        text = f'<text x="12" y="{y + 4}" fill="{colour}">{html.escape(label)}</text>'
        if what == "dot":
            return f'{text}<circle cx="{self._x(start)}" cy="{y}" r="5" fill="{colour}"/>'
        x, width = self._x(start), self._x(end) - self._x(start)
        place = f'x="{x}" y="{y - 8}" width="{width}" height="16" rx="3"'
        return f'{text}<rect {place} fill="{colour}" opacity="0.75"/>'


def seconds(time: datetime) -> float:
    return (time.replace(tzinfo=UTC) - START) / timedelta(seconds=1)


def at(time: float) -> datetime:
    return START + timedelta(seconds=time)


def draw(
    spark: SparkSession, function: Callable[[DataFrame], DataFrame], steps: list[Step], output: str = "append"
) -> None:
    """Run a function over steps, and draw what it did."""
    timeline, latest, number = Timeline(function.__doc__ or "", 80), -1.0, 0
    with Feed(spark, function, rows=SCHEMA, output=output) as feed:
        for step in steps:
            if isinstance(step, list):
                rows = [("a", at(time), number + place) for place, time in enumerate(step)]
                number += len(rows)
                emitted = feed.send(rows=rows)
                for _, time, name in rows:
                    timeline.event(seconds(time), fate(name, emitted, function))
                latest = max([latest, *(time - DELAY for time in step)])
            else:
                emitted = feed.advance(at(step))
                latest = max(latest, step)
            if function not in (leaders, view):  # which have no watermark
                timeline.moved(latest)
            results = [row for row in emitted if "kind" in row and row.kind is not None]
            for row in sorted(results, key=lambda row: (row.end, row.start, row.asDict().get("label", ""))):
                timeline.result(row)
    (HERE / f"{function.__name__}.svg").write_text(timeline.svg())


def fate(number: int, emitted: list[Row], function: object) -> str:
    """What became of an event, as far as it is known when it came."""
    own = [row for row in emitted if "n" in row and row.n == number]
    if own and own[0]._side_output is not None:
        return "side output"
    if function is duplicates:
        return "passed" if own else "left out"
    return "event"


LATE = {
    "time": "at",
    "by": "key",
    "watermark": "5 seconds",
    "late": Late.refire(within="20 seconds").then("late"),
    "buckets": 1,
}
STORY: list[Step] = [[3, 8, 12], [21], [9], [33, 28], [14], 60.0, [25], [62]]


def tumbling(rows: DataFrame) -> DataFrame:
    """Tumbling windows of 20 s, corrected for 20 s; what is later goes to a side output"""
    return rows.transform(windows.tumbling("20 seconds", **LATE).agg(seen=agg.count()))


def hopping(rows: DataFrame) -> DataFrame:
    """Hopping windows of 20 s, one every 10 s"""
    return rows.transform(windows.hopping("20 seconds", every="10 seconds", **LATE).agg(seen=agg.count()))


def sessions(rows: DataFrame) -> DataFrame:
    """Sessions with a gap of 8 s: a late event joins two of them"""
    return rows.transform(windows.session("8 seconds", **LATE).agg(seen=agg.count()))


def sliding(rows: DataFrame) -> DataFrame:
    """A window of 20 s for each event; a late one corrects those after it"""
    return rows.transform(windows.sliding("20 seconds", **LATE).agg(seen=agg.count()))


def native(rows: DataFrame) -> DataFrame:
    """Native tumbling windows of 20 s: emitted once, and Spark drops what is late"""
    windowing = windows.tumbling("20 seconds", time="at", by="key", watermark="5 seconds")
    return rows.transform(windowing.agg(F.count("*").alias("rows")))


def top(rows: DataFrame) -> DataFrame:
    """The two greatest of three keys, which take turns, in each window of 20 s"""
    minutes = windows.tumbling("20 seconds", time="at", by="key", watermark="5 seconds")
    best = taking_turns(rows).transform(minutes.top(2, "views", F.count("*").alias("views")))
    return best.withColumn("label", F.format_string("%d. %s: %d", "rank", "key", "views"))


def leaders(rows: DataFrame) -> DataFrame:
    """The two greatest of three keys over all that has come: places that have changed are emitted"""
    best = taking_turns(rows).transform(
        ranking.top(2, "views", by="key", views=agg.count(), last=agg.max("at"))
    )
    return best.select(
        F.lit(START).alias("start"),
        F.col("last").alias("end"),
        F.lit("on time").alias("kind"),
        F.format_string("%d. %s: %d", "place", "key", "views").alias("label"),
    )


def sketched(rows: DataFrame) -> DataFrame:
    """About how many different keys there are in each window of 20 s"""
    windowing = windows.tumbling("20 seconds", time="at", watermark="5 seconds")
    counted = taking_turns(rows).transform(windowing.agg(sketches.distinct("key", error=0.02).alias("keys")))
    return counted.withColumn("label", F.format_string("about %d keys", "keys"))


def recent(rows: DataFrame) -> DataFrame:
    """What is recent, 20 s back, at each event when it comes"""
    seen = rows.transform(keyed.recent(by="key", time="at", within="20 seconds", watermark="5 seconds"))
    return seen.select(
        (F.col("event.at") - F.expr("interval 20 seconds")).alias("start"),
        F.col("event.at").alias("end"),
        F.lit("on time").alias("kind"),
        F.format_string("recent: %d", keyed.count()).alias("label"),
    )


def taking_turns(rows: DataFrame) -> DataFrame:
    return rows.withColumn("key", F.concat(F.lit("key "), F.col("n") % 3))


def duplicates(rows: DataFrame) -> DataFrame:
    """Duplicates, less than 30 s away from an event that passed, are left out"""
    late = Late.send("late")
    return rows.transform(
        dedup.first("key", time="at", within="30 seconds", watermark="5 seconds", late=late, buckets=1)
    )


def split(rows: DataFrame) -> tuple[DataFrame, DataFrame]:
    """Every second row is of the other side; where it is in the log, as flows have it."""
    place = F.struct(
        F.lit("log").alias("topic"), F.lit(0).alias("partition"), F.col("n").alias("offset"),
        F.col("at").alias("written"),
    )  # fmt: skip
    placed = rows.withColumn("_source", place)
    return placed.where("n % 2 = 0"), placed.where("n % 2 = 1")


def within(rows: DataFrame) -> DataFrame:
    """Two streams in turns: an event, and those of the other one up to 15 s before it, or none"""
    left, right = split(rows)
    near = joins.within(
        right,
        on="key",
        time="at",
        before="15 seconds",
        how="left",
        watermark="5 seconds",
        names=("one", "other"),
    )
    alone = F.col("other").isNull()
    return left.transform(near).select(
        F.coalesce("other.at", "one.at").alias("start"),
        (F.col("one.at") + F.expr("interval 1 second")).alias("end"),
        F.when(alone, "corrected").otherwise("on time").alias("kind"),
        F.when(alone, "alone").otherwise("a pair").alias("label"),
    )


def as_of(rows: DataFrame) -> DataFrame:
    """Events and rows of a table in turns: the row that was there at the time of an event"""
    events, table = split(rows)
    then = joins.as_of(
        table, on="key", time="at", since="at", history="1 hour", watermark="5 seconds", buckets=1
    )
    row = F.col("row.at")
    return events.transform(then).select(
        F.coalesce(row, "at").alias("start"),
        (F.col("at") + F.expr("interval 1 second")).alias("end"),
        F.when(row.isNull(), "corrected").otherwise("on time").alias("kind"),
        F.when(row.isNull(), F.lit("no row yet"))
        .otherwise(F.format_string("row of %d s", F.unix_timestamp(row) - F.lit(int(START.timestamp()))))
        .alias("label"),
    )


def view(rows: DataFrame) -> DataFrame:
    """Orders, and prices of their product, in turns: what changes in a view of both"""
    orders, prices = split(rows)
    names = {"names": ("order", "price"), "how": "left", "buckets": 1}
    changed = orders.transform(joins.tables(prices, on="key", keys=("n", "key"), **names))
    return changed.select(
        F.coalesce(F.greatest("order.at", "price.at"), "order.at").alias("start"),
        (F.greatest("order.at", "price.at") + F.expr("interval 3 seconds")).alias("end"),
        F.when(F.col("change") == "update", "corrected").otherwise("on time").alias("kind"),
        F.format_string("%s order %d", "change", F.col("order.n")).alias("label"),
    )


def main() -> None:
    spark = session(name="pictures", partitions=1, shuffle=1)
    for function in (tumbling, hopping, sliding, native):
        draw(spark, function, STORY)
    draw(spark, top, [[3, 8, 12, 15], [21, 33, 28, 30, 31], 60.0, [62]])
    draw(spark, leaders, [[3, 8, 12, 15], [21], [28, 33]])
    draw(spark, sketched, [[3, 8, 12, 15], [21, 28], [33], 60.0])
    draw(spark, recent, [[3], [12], [21], [14], [33]], output="update")
    draw(spark, sessions, [[3, 8], [20, 24], [38], [14], 45.0, [60], 79.0])
    draw(spark, within, [[10], [5], [22, 30], [24, 33], 60.0])
    draw(spark, as_of, [[22], [8], [12, 20], [33, 30], [25], 60.0])
    draw(spark, view, [[3], [10], [14], [25]])
    draw(spark, duplicates, [[3], [10, 25], [36], [30], [70], [2]])
    spark.stop()


if __name__ == "__main__":
    main()
