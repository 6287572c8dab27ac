"""Results of every application, as streams give them, and what is known to be behind each."""

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import cached_property, partial
from random import Random
from typing import Any

from tests.shop_books import Books

from penstock.apps.ads import traffic as ads_traffic
from penstock.apps.ads.events import Click, Impression
from penstock.apps.ads.pipeline import ads
from penstock.apps.enrichment import traffic as enrichment_traffic
from penstock.apps.enrichment.events import User
from penstock.apps.enrichment.pipeline import enrichment
from penstock.apps.fraud import traffic as fraud_traffic
from penstock.apps.fraud.events import Alert, Model
from penstock.apps.fraud.pipeline import fraud
from penstock.apps.leaderboard import traffic as leaderboard_traffic
from penstock.apps.leaderboard.events import Total
from penstock.apps.leaderboard.pipeline import leaderboard
from penstock.apps.notifications import traffic as notifications_traffic
from penstock.apps.notifications.pipeline import notifications
from penstock.apps.pageviews import traffic as pageviews_traffic
from penstock.apps.pageviews.pipeline import pageviews
from penstock.apps.sensors import traffic as sensors_traffic
from penstock.apps.sensors.pipeline import sensors
from penstock.apps.sessions import traffic as sessions_traffic
from penstock.apps.sessions.pipeline import sessions
from penstock.apps.shop.pipeline import shop
from penstock.apps.shop.traffic import Traffic as ShopTraffic
from penstock.apps.trades import traffic as trades_traffic
from penstock.apps.trades.events import Quote, Report
from penstock.apps.trades.pipeline import trades
from penstock.apps.trending import traffic as trending_traffic
from penstock.apps.trending.pipeline import trending
from penstock.ops.why.answer import Made, Place
from penstock.ops.why.asking import Question, explained, names_of
from penstock.ops.why.lookup import Looked
from penstock.process.columns.names import DELETED, SOURCE
from penstock.process.columns.side_output import SIDE_OUTPUT
from penstock.schemas import spark_schema
from penstock.testing import Feed, Sent
from penstock.testing.recomputed import plain, topic_frame
from penstock.testing.topic_rows import TopicRows

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
OWN = (SOURCE, DELETED, SIDE_OUTPUT)


@dataclass(frozen=True)
class Case:
    """A flow, batches of what it reads, and what must be true of the events behind a result."""

    pipeline: Any
    name: str
    batches: Callable[[], list[dict[str, list[Any]]]]
    is_right: Callable[[dict[str, Any], list[dict[str, Any]], dict[str, list[dict[str, Any]]]], bool]
    until: datetime | None = None
    but_for: tuple[str, ...] = ()
    runs: int = 60
    looked_up: dict[str, list[Any]] = field(default_factory=dict)

    def __str__(self):
        return f"{self.pipeline.name}.{self.name}"

    @cached_property
    def flow(self):
        return self.pipeline.flows[self.name]


@dataclass
class Asked:
    """A flow's results, and the frames of what it has read."""

    case: Case
    spark: Any
    results: list[dict[str, Any]] = field(default_factory=list)
    rows: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    def __post_init__(self):
        flow, batches = self.case.flow, self.case.batches()
        makers = {name: TopicRows(topic) for name, topic in flow.reads.items()}
        self.rows = {
            name: [maker.row(each) for batch in batches for each in batch.get(name, ())]
            for name, maker in makers.items()
        }
        function = partial(flow.function, **self.tables)
        with Feed(self.spark, function, output=flow.output, **flow.reads) as feed:
            for batch in batches:
                feed.send(**batch)
            if self.case.until is not None:
                feed.advance(self.case.until)
        self.results = [each for each in map(plain, feed.results) if not each.get(SIDE_OUTPUT)]

    @cached_property
    def tables(self):
        schemas = {name: spark_schema(table.event) for name, table in self.case.flow.looks_up.items()}
        return {
            name: self.spark.createDataFrame([asdict(each) for each in self.case.looked_up[name]], schema)
            for name, schema in schemas.items()
        }

    @cached_property
    def frames(self):
        topics = self.case.flow.reads
        return {
            name: topic_frame(self.spark, topic, self.rows[name]).cache() for name, topic in topics.items()
        }

    def why(self, result):
        flow = self.case.flow
        source = result.get(SOURCE)
        place = None if source is None else Place(source["topic"], source["partition"], source["offset"])
        values = {name: value for name, value in result.items() if name not in OWN}
        looked = Looked(values, made=Made(str(self.case), source=place), deleted=bool(result.get(DELETED)))
        question = Question(names_of(flow)[0], runs=self.case.runs)
        return explained(flow, str(self.case), looked, question, self.frames, self.tables)

    @property
    def kept(self):
        """What the target holds: of an upserted key, the last row."""
        key = self.case.flow.target.upsert_key
        last = {tuple(each[name] for name in key) or place: each for place, each in enumerate(self.results)}
        return list(last.values())

    def check(self, count, seed=1):
        """Ask why of some results that are no deletions; return the answers."""
        kept = [each for each in self.kept if not each.get(DELETED) and each.get("kind") != "retracted"]
        answers = []
        for result in Random(seed).sample(kept, min(count, len(kept))):
            answer = self.why(result)
            events = [{**each.values, "argument": each.argument} for each in answer.events]
            assert answer.proved or answer.but_for, (str(self.case), result, answer.summary)
            assert set(answer.but_for) <= {*self.case.but_for}, (result, answer.but_for)
            assert self.case.is_right(result, events, self.rows), (result, events, answer.summary)
            answers.append(answer)
        return answers


def split(name, events, parts=3):
    size = -(-len(events) // parts)
    return [{name: list(some)} for some in batched(events, size)]


def batched(events, size):
    return [events[first : first + size] for first in range(0, len(events), size)]


def ids(events):
    return {each["id"] for each in events}


def in_minute(result, event, time="at"):
    return result["start"] <= event[time] < result["end"]


def of(events, argument):
    return [each for each in events if each["argument"] == argument]


# Page views
def views():
    traffic = pageviews_traffic.Traffic()
    moments = [NOON + timedelta(seconds=number / 3) for number in range(600)]
    return split("views", [Sent(traffic.next(now), written=now) for now in moments])


def is_the_window(result, events, _):
    return len(events) == result["rows"] and all(
        each["url"] == result["url"] and in_minute(result, each) for each in events
    )


def has_the_window(count):
    def is_right(result, events, _):
        own = [each for each in events if each["url"] == result["url"] and in_minute(result, each)]
        return len(own) == result[count]

    return is_right


def counts_the_minute(result, events, _):
    end = result["start"] + timedelta(minutes=1)
    return len(events) == result["views"] and all(
        each["url"] == result["url"] and result["start"] <= each["at"] < end for each in events
    )


def has_its_pages(result, events, _):
    return len(events) >= sum(page["views"] for page in result["pages"][:1])


# Trending
def posts():
    traffic = trending_traffic.Traffic()
    made = [*traffic.history(NOON, timedelta(minutes=1), 5)]
    traffic.plant(NOON)
    made += [traffic.next(NOON + timedelta(seconds=number / 5)) for number in range(150)]
    return split("posts", [*made, *traffic.closing(NOON + timedelta(seconds=30))])


def uses_of_the_tag(result, events, _):
    own = [each for each in events if each["tag"] == result["tag"] and in_minute(result, each)]
    return len(own) == result["uses"]


# Leaderboard
def games():
    traffic = leaderboard_traffic.Traffic(30)
    moments = (NOON + timedelta(seconds=number) for number in range(200))
    return split("games", [traffic.next(now) for now in moments], 6)


def adds_up(result, events, _):
    return sum(each["points"] for each in events) == result["points"] and {
        each["player"] for each in events
    } == {result["player"]}


def totals():
    points = dict.fromkeys(range(30), 0)
    random, made = Random(2), []
    for number in range(150):
        player, more = random.randrange(30), random.randrange(1, 20)
        before, points[player] = points[player] or None, points[player] + more
        made.append(Total(player, before, points[player], NOON + timedelta(seconds=number), id=f"t{number}"))
    return split("totals", made)


def is_the_best(result, events, _):
    better = {each["player"] for each in events if each["points"] > result["points"]}
    return (
        max(each["points"] for each in events if each["player"] == result["player"]) == result["points"]
        and len(better) <= result["place"] - 1
    )


def is_the_total(result, events, _):
    return [each["points"] for each in events] == [result["points"]]


def of_the_level(result, events, _):
    def level(points):
        return None if points is None else points // result["width"]

    came = sum(level(each["points"]) == result["level"] for each in events)
    went = sum(level(each["before"]) == result["level"] for each in events)
    return came - went == result["players"]


# Notifications
def requests():
    traffic = notifications_traffic.Traffic()
    return split("requested", [traffic.next() for _ in range(300)])


def is_the_event(result, events, _):
    return ids(events) == {result["id"]}


# Ads
def impressions_and_clicks():
    traffic = ads_traffic.Traffic()
    sent = [*(traffic.next() for _ in range(1_500)), *traffic.rest()]
    return [
        {
            "impressions": [each for each in some if isinstance(each, Impression)],
            "clicks": [each for each in some if isinstance(each, Click)],
        }
        for some in batched(sent, 600)
    ]


def is_the_match(result, events, _):
    shown = [each["impression"] for each in of(events, "impressions")]
    clicked = [each["click"] for each in of(events, "clicks")]
    return shown == [result["impression"]] and clicked == ([result["click"]] if result["click"] else [])


def outcomes():
    from penstock.apps.ads.events import Outcome

    random = Random(3)
    made = []
    for number in range(120):
        click = f"c{number}" if random.random() < 0.3 else None
        at = NOON + timedelta(seconds=30 * number)
        made.append(Outcome(f"i{number}", f"campaign-{number % 4}", click, at, id=f"o{number}"))
    return split("outcomes", made)


def is_of_the_campaign(result, events, _):
    return len({each["impression"] for each in events}) == result["impressions"] and all(
        each["campaign"] == result["campaign"] and in_minute(result, each) for each in events
    )


# Sessions
def session_views():
    traffic = sessions_traffic.Traffic(users=12)
    return split("views", [*(traffic.next() for _ in range(300)), *traffic.rest()])


def is_the_visit(result, events, _):
    return len(events) == result["rows"] and all(
        each["user"] == result["user"] and in_minute(result, each) for each in events
    )


# Sensors
def readings():
    traffic = sensors_traffic.Traffic(machines=15)
    return split("readings", [*(traffic.next() for _ in range(900)), *traffic.rest()], 2)


def are_hot(result, events, _):
    return (
        result["reading"] in ids(events)
        and len(events) == 3
        and all(each["machine"] == result["machine"] and each["temperature"] > 90 for each in events)
    )


def is_the_reading(result, events, _):
    return ids(events) == {result["reading"]}


# Trades
def reports_and_quotes():
    traffic = trades_traffic.Traffic()
    sent = [*(traffic.next() for _ in range(400)), *traffic.rest()]
    return [
        {
            "reports": [each for each in some if isinstance(each, Report)],
            "quotes": [each for each in some if isinstance(each, Quote)],
        }
        for some in batched(sent, 250)
    ]


def reports_only():
    return [{"reports": each["reports"]} for each in reports_and_quotes()]


def is_the_quote(result, events, _):
    quotes = of(events, "quotes")
    known = [(each["bid"], each["ask"]) for each in quotes]
    return [each["trade"] for each in of(events, "reports")] == [result["trade"]] and known == (
        [] if result["bid"] is None else [(result["bid"], result["ask"])]
    )


def are_its_versions(result, events, _):
    versions = [each["version"] for each in events]
    return {each["trade"] for each in events} == {result["trade"]} and max(versions) == result["version"]


def changes():
    from penstock.apps.trades.events import Change

    random, made = Random(4), []
    for number in range(150):
        money = Decimal(random.randrange(1, 100))
        at = NOON + timedelta(seconds=2 * number)
        made.append(Change(f"t{number}", 1, f"S{number % 3}", money, number % 7 + 1, at, id=f"c{number}"))
    return split("changes", made)


def is_the_minute(result, events, _):
    return len(events) == result["rows"] and {each["symbol"] for each in events} == {result["symbol"]}


# Enrichment
def activity_and_users():
    traffic = enrichment_traffic.Traffic()
    done = [traffic.next(NOON + timedelta(seconds=number)) for number in range(150)]
    known = {each.user_id for each in done}
    first = enrichment_traffic.first_country
    rows = [
        Sent(User(user, first(user), id=str(user)), written=NOON - timedelta(days=1))
        for user in sorted(known)
        if first(user)
    ]
    return [{"users": rows}, {"activity": done}]


def is_the_user(result, events, _):
    country = [each["country"] for each in of(events, "users")]
    return ids(of(events, "activity")) == {result["id"]} and country == (
        [] if result["country"] is None else [result["country"]]
    )


# Shop
def books():
    made, traffic = Books(first_stock=12), ShopTraffic()
    for _ in range(60):
        made.perform(traffic.next())
    return made


def lines_and_orders():
    changes = books().changes
    return [{"orders": changes["orders"], "lines": changes["lines"]}]


def lines_and_products():
    made = books()
    sold = [Sent(each, written=NOON + timedelta(seconds=n)) for n, each in enumerate(made.sold)]
    return [{"products": made.changes["products"]}, {"lines": sold}]


def products():
    return split("products", books().changes["products"], 2)


def are_line_and_order(result, events, _):
    lines, orders = of(events, "lines"), of(events, "orders")
    return {each["id"] for each in lines} == {result["line_id"]} and {each["id"] for each in orders} == {
        result["order_id"]
    }


def are_line_and_product(result, events, _):
    lines, found = of(events, "lines"), of(events, "products")
    return [each["line_id"] for each in lines] == [result["line_id"]] and {
        (each["id"], each["price"]) for each in found
    } == {(result["product_id"], result["price"])}


def is_the_fall(result, events, _):
    last = events[-1]
    return {each["id"] for each in events} == {result["product_id"]} and last["stock"] == result["stock"]


# Fraud
def acts():
    traffic = fraud_traffic.Traffic(honest=20, scenarios=12)
    homes = [Sent(each, written=NOON - timedelta(days=1)) for each in traffic.profiles()]
    done = [traffic.next(NOON + timedelta(seconds=number / 5)) for number in range(900)]
    return [{"profile": homes}, {"acts": done[:500]}, {"acts": done[500:]}]


def acts_only():
    return [{"acts": each["acts"]} for each in acts() if "acts" in each]


def is_the_evidence(result, events, _):
    return ids(of(events, "acts")) == {*result["evidence"]}


def alerts():
    random = Random(5)
    made = [
        Alert(
            f"card-{number % 9}",
            f"user-{number % 9}",
            "many",
            [f"e{number}"],
            NOON + timedelta(seconds=number),
            id=f"a{random.randrange(60)}",
        )
        for number in range(90)
    ]
    return split("alerts", made)


def has_acts(result, events, _):
    return len(events) == result["acts"] and {each["user"] for each in events} == {result["user"]}


def is_the_first(result, events, rows):
    place = next(row for row in rows["alerts"] if row["id"] == result["id"])
    return ids(events) == {result["id"]} and events[0]["at"] == place["at"] and len(events) == 1


def is_the_alert(result, events, _):
    return ids(events) == {result["alert"]}


LATER = NOON + timedelta(days=3)
KNOWN = {"model": [Model("logistic", -9.0, {"ratio": 1.0, "far": 1.0}, NOON)]}
CASES = [
    Case(pageviews, "minutes", views, is_the_window, LATER),
    Case(pageviews, "running_minutes", views, counts_the_minute),
    Case(pageviews, "top", views, has_the_window("views"), LATER),
    Case(pageviews, "about_top", views, has_its_pages, LATER, but_for=("pages",), runs=20),
    Case(trending, "tumbling", posts, uses_of_the_tag, runs=40),
    Case(leaderboard, "add_up", games, adds_up, but_for=("before",)),
    Case(leaderboard, "top", totals, is_the_best),
    Case(leaderboard, "players", totals, is_the_total),
    Case(leaderboard, "levels", totals, of_the_level),
    Case(notifications, "once", requests, is_the_event, LATER),
    Case(ads, "matched", impressions_and_clicks, is_the_match, LATER),
    Case(ads, "click_through", outcomes, is_of_the_campaign, LATER),
    Case(sessions, "visited", session_views, is_the_visit, LATER),
    Case(sensors, "hot", readings, are_hot),
    Case(sensors, "silent", readings, is_the_reading),
    Case(trades, "beside_quotes", reports_and_quotes, is_the_quote, LATER),
    Case(trades, "changed", reports_only, are_its_versions),
    Case(trades, "average_price", changes, is_the_minute, LATER),
    Case(enrichment, "with_country", activity_and_users, is_the_user),
    Case(shop, "sold", lines_and_orders, are_line_and_order),
    Case(shop, "view", lines_and_products, are_line_and_product),
    Case(shop, "running_low", products, is_the_fall),
    Case(fraud, "suspicious", acts, is_the_evidence, looked_up=KNOWN),
    Case(fraud, "taken_over", acts_only, is_the_evidence),
    Case(fraud, "block", alerts, is_the_alert),
    Case(fraud, "each_once", alerts, is_the_first, LATER),
    Case(fraud, "count_suspects", alerts, has_acts),
]
