"""The console on the real platform: its answers, its actions, and its pages in a real browser."""

import json
import time
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Annotated

import httpx
import pytest
from axe_playwright_python.sync_playwright import Axe
from tests.browser import chromium
from tests.console import NOWHERE, csrf, served
from tests.observed_system import flow, group, lag, system, topic
from websockets.sync.client import connect

from penstock.console.server import Watched
from penstock.events import Event, Precision, new_id
from penstock.gateway import Declared
from penstock.log import Broker, Consumer, Groups, Producer, Topic, apply
from penstock.log.dead_letters import DeadLetter, DeadLetters
from penstock.ops.collecting import collecting, look
from penstock.ops.doctor.probes import Probes
from penstock.registry import Registry

EVIL = "<img src=x onerror=\"document.title='hacked'\"><script>document.title='hacked'</script>"
PATIENCE = 15_000  # milliseconds
STRANGE = ("constructor", "__proto__", "toString", "hasOwnProperty")
DRAWN = "count => document.querySelectorAll('.spark .line[d^=M]').length === count"


@dataclass(frozen=True)
class Order(Event):
    customer: str
    amount: Annotated[Decimal, Precision(12, 2)]
    at: datetime = field(default_factory=lambda: datetime.now(UTC))


@pytest.fixture(scope="module")
def shop(settings):
    """A topic with 40 events, a group that lacks 4, two dead letters, a schema and a flow."""
    name = f"shop{new_id()[-8:]}"
    orders = Topic(f"{name}.orders", Order, key="customer", partitions=3)
    stock = Topic(f"{name}.stock", Order, key="customer", format="avro")
    apply([orders, stock], Broker(settings))
    with Registry(settings) as registry, Producer(settings, schemas=registry) as producer:
        producer.send(stock, Order("ann", Decimal(1)))
        for number in range(39):
            producer.send(orders, Order(f"c{number % 5}", Decimal(number)))
        producer.send(orders, Order(EVIL, Decimal("12.50")))
        for text in (b"{}", EVIL.encode()):
            producer.send_bytes(orders.name, b"bad", text)
        producer.flush()
        with Consumer(orders, settings, group=f"{name}-billing") as consumer:
            assert len(list(consumer.records(idle="2 seconds"))) == 40
        for number in range(4):
            producer.send(orders, Order("late", Decimal(number)))
        status = flow(f"{name}.bill", at=time.time(), reads=(orders.name,), target=f"PostgresTable {name}")
        Broker(settings).ensure(status.identity.statuses, 1, {"cleanup.policy": "compact"})
        producer.send_bytes(status.identity.statuses, status.identity.sink.encode(), status.to_json())
    return name


@pytest.fixture(scope="module")
def site(settings, shop):
    """A console's address, and a client of it that may act."""
    declared = {
        name: Topic(f"{shop}.{name}", Order, key="customer", **more)
        for name, more in (("orders", {"partitions": 3}), ("stock", {"format": "avro"}))
    }
    with ExitStack() as opened:
        collector = opened.enter_context(collecting(settings))
        served_here = Declared({each.name: each for each in declared.values()})
        watched = Watched(collector.look, lambda: (look(settings), Probes()), served_here)
        address = opened.enter_context(served(settings, watched))
        web = opened.enter_context(httpx.Client(base_url=address, timeout=30))
        web.headers.update(csrf(web))
        yield address, web


@pytest.fixture(scope="module")
def web(site):
    return site[1]


def asked(web, path, **query):
    answer = web.get(f"/api/{path}", params={key.rstrip("_"): value for key, value in query.items()})
    assert answer.status_code == 200, answer.text
    return answer.json()


def act(web, action, *, dry_run, **values):
    return web.post("/api/actions", json={"action": action, "dry_run": dry_run, **values})


def test_the_figures_are_the_systems(web, settings, shop):
    found = asked(web, "topic", name=f"{shop}.orders")
    offsets = Broker(settings).offsets(f"{shop}.orders")
    assert {each["partition"]: (each["first"], each["end"]) for each in found["partitions"]} == offsets
    assert found["events"] == 46
    lag = sum(each.events for each in Groups(settings).lag(f"{shop}-billing"))
    assert asked(web, "group", name=f"{shop}-billing")["events"] == lag == 4
    assert asked(web, "flow", name=f"{shop}.bill")["percentiles"]["p99"] == 0.5


@pytest.mark.parametrize(
    ("query", "count"),
    [
        ({}, 46),
        ({"key": "late"}, 4),
        ({"text": "ONERROR"}, 2),
        ({"from": "beginning", "limit": "500"}, 46),
        ({"from": "2020-01-01T00:00:00Z", "key": "late"}, 4),
        ({"from": "2100-01-01T00:00:00Z"}, 0),
        ({"from": "end"}, 0),
        ({"text": "__import__('os')"}, 0),
    ],
)
def test_events_are_found_by_key_text_and_time(web, shop, query, count):
    assert len(asked(web, "events", name=f"{shop}.orders", **query)["events"]) == count


def test_the_latest_of_a_key_are_its_newest(web, shop):
    name = f"{shop}.orders"
    every = asked(web, "events", name=name, key="c1", from_="beginning")["events"]
    found = asked(web, "events", name=name, key="c1", limit=3)
    assert found["events"] == sorted(every, key=lambda each: each["offset"], reverse=True)[:3]
    assert found["incomplete"] is False


def test_a_search_goes_on_where_it_stopped(web, shop):
    seen, following = [], "beginning"
    while following:
        found = asked(web, "events", name=f"{shop}.orders", from_=following, limit=20)
        seen += [(each["partition"], each["offset"]) for each in found["events"]]
        following = found["next"]
    assert len(seen) == len(set(seen)) == 46


def test_an_offset_names_its_partition(web, shop):
    (first, *_) = asked(web, "events", name=f"{shop}.orders", partition=1, offset=2)["events"]
    assert (first["partition"], first["offset"]) == (1, 2)
    for query in ({"partition": 9, "offset": 0}, {"offset": 3}, {"partition": 1, "offset": -1}):
        assert web.get("/api/events", params={"name": f"{shop}.orders", **query}).status_code in (400, 404)
    assert web.get("/api/events", params={"name": "no-such-topic"}).status_code >= 400


def test_events_that_name_their_schema_are_decoded(web, shop):
    (found,) = asked(web, "events", name=f"{shop}.stock")["events"]
    assert (found["event"]["customer"], found["event"]["amount"]) == ("ann", "1.00")


def test_a_tail_has_what_comes(site, settings, shop):
    address, _ = site
    with connect(f"{address.replace('http', 'ws')}/api/tail?name={shop}.orders", origin=address) as socket:
        assert json.loads(socket.recv(timeout=10)) == {"events": [], "skipped": 0}
        with Producer(settings) as producer:
            producer.send(
                Topic(f"{shop}.orders", Order, key="customer", partitions=3), Order("tail", Decimal(7))
            )
        (found,) = json.loads(socket.recv(timeout=10))["events"]
    assert (found["key"], found["event"]["amount"]) == ("tail", "7.00")


def test_a_group_is_moved_after_a_dry_run_and_written_down(web, settings, shop):
    values = {"group": f"{shop}-billing", "topic": f"{shop}.orders", "to": "beginning"}
    before = Groups(settings).positions(values["group"])
    shown = act(web, "group.reset", dry_run=True, **values).json()
    assert "42 events are read again" in shown["summary"]
    assert Groups(settings).positions(values["group"]) == before
    assert act(web, "group.reset", dry_run=False, **values).status_code == 200
    assert set(Groups(settings).positions(values["group"])[values["topic"]].values()) == {0}
    (line, *_) = asked(web, "audit")["lines"]
    assert (line["action"], line["outcome"][:5]) == ("group.reset", "done:")
    refused = act(web, "group.reset", dry_run=True, **{**values, "to": "never"})
    assert (refused.status_code, "is not a position" in refused.json()["message"]) == (409, True)


def test_dead_letters_that_are_still_malformed_stay(web, shop):
    topic = f"{shop}.orders"
    assert len(asked(web, "events", name=f"{topic}.dead-letters")["events"]) == 2
    shown = act(web, "topic.redrive", dry_run=True, topic=topic).json()
    assert shown["summary"] == "0 would be sent again, 2 still can't be decoded"
    done = act(web, "topic.redrive", dry_run=False, topic=topic).json()
    assert done["summary"] == "0 sent again, 2 still dead"


def test_an_event_is_made_by_the_form_of_its_class(web, shop):
    form = asked(web, "topic", name=f"{shop}.orders")["form"]
    assert (form["required"], "id" in form["made"]) == (["customer", "amount"], True)
    wrong = act(
        web, "topic.send", dry_run=True, topic=f"{shop}.orders", event={"customer": "x", "amount": "much"}
    )
    assert (wrong.status_code, wrong.json()["field"]) == (422, "amount")
    for name in ("orders", "stock"):
        event = {"customer": "form", "amount": "3.10"}
        assert act(web, "topic.send", dry_run=False, topic=f"{shop}.{name}", event=event).status_code == 200
        (found,) = asked(web, "events", name=f"{shop}.{name}", key="form")["events"]
        assert found["event"]["amount"] == "3.10"
    assert act(web, "topic.send", dry_run=False, topic="unknown", event={}).status_code == 405


def test_a_schema_is_checked_before_it_is_registered(web, shop):
    subject = f"{shop}.stock-value"
    assert subject in [each["subject"] for each in asked(web, "subjects")["subjects"]]
    known = json.loads(asked(web, "subject", name=subject)["versions"][0]["text"])
    lacking = {**known, "fields": [*known["fields"], {"name": "weight", "type": "double"}]}
    values = {"subject": subject, "type": "AVRO", "text": json.dumps(lacking)}
    shown = act(web, "schema.register", dry_run=True, **values).json()
    assert shown["rows"], shown
    assert act(web, "schema.register", dry_run=False, **values).status_code >= 400
    lacking["fields"][-1]["default"] = 0.0
    values["text"] = json.dumps(lacking)
    assert act(web, "schema.register", dry_run=True, **values).json()["summary"].startswith("compatible")
    assert act(web, "schema.register", dry_run=False, **values).status_code == 200
    versions = asked(web, "subject", name=subject)["versions"]
    assert [each["version"] for each in versions] == [1, 2]
    assert any("weight" in line for line in versions[1]["diff"])


@pytest.fixture
def browser():
    """A page of a browser in which nothing may go wrong."""
    errors = []
    with chromium() as browser:
        found = browser.new_page(viewport={"width": 1280, "height": 900})
        found.on("pageerror", lambda error: errors.append(str(error)))
        found.on("console", lambda said: errors.append(said.text) if said.type == "error" else None)
        yield found
    assert errors == []


@pytest.fixture
def page(browser, site):
    browser.address = site[0]
    return browser


@pytest.fixture
def strange(browser):
    """A page of a recorded system, in which names are those that JavaScript's objects have by themselves."""

    def look():
        topics = tuple(topic(each) for each in STRANGE)
        groups = tuple(group(each, lags=(lag(),)) for each in STRANGE)
        return replace(system(), at=time.time(), topics=topics, groups=groups)

    with served(NOWHERE, Watched(look, lambda: (look(), Probes()))) as address:
        browser.address = address
        yield browser
        browser.goto("about:blank")


def go(page, path, text):
    """Open a page, and wait until a text is on it; return all of it."""
    page.goto(f"{page.address}/#/{path}")
    page.wait_for_function(
        "text => document.getElementById('main').innerText.includes(text)", arg=text, timeout=PATIENCE
    )
    return page.inner_text("main")


def tiles(page):
    found = page.eval_on_selector_all(
        ".tile", "all => all.map(each => [each.children[0].innerText, each.children[1].innerText])"
    )
    return dict(found)


@pytest.mark.timeout(120)
def test_every_page_shows_the_systems_numbers(page, web, shop):
    topic, group = f"{shop}.orders", f"{shop}-billing"
    go(page, "", "Live map")
    go(page, "", "wait, in")  # the dead letters
    page.wait_for_selector(f"svg a[href='#/topics/{topic}']", timeout=PATIENCE)
    page.wait_for_function("() => document.getElementById('age').textContent === 'live'", timeout=PATIENCE)
    go(page, "topics", topic)
    events = asked(web, "topic", name=topic)["events"]
    row = page.inner_text(f"tr:has(a[href='#/topics/{topic}'])")
    assert str(events) in row.split(), row
    go(page, f"topics/{topic}", "onerror")
    page.wait_for_function("() => document.querySelector('.tile .value').innerText !== '–'", timeout=PATIENCE)
    assert tiles(page)["Events kept"] == str(events)
    assert page.title() == f"{topic} – Penstock"
    assert page.query_selector("main img, main script") is None
    go(page, "groups", group)
    go(page, f"groups/{group}", "Lag of each partition")
    page.wait_for_function("() => document.querySelector('.tile .value').innerText !== '–'", timeout=PATIENCE)
    assert tiles(page)["Lag"] == str(asked(web, "group", name=group)["events"])
    assert "≤ 500 ms" in go(page, "pipelines", "bill")
    go(page, f"pipelines/{shop}.bill", "Where a batch's time goes")
    page.wait_for_function(
        "() => document.querySelector('.tile .value').innerText === 'running'", timeout=PATIENCE
    )
    assert "the last batch" in page.inner_text("main")
    assert "AVRO" in go(page, "schemas", f"{shop}.stock-value")
    go(page, f"schemas/{shop}.stock-value", "Version 1")
    go(page, "captures", "Captures")
    go(page, "views", "penstock console -m shop.py")
    assert "letters.waiting" in go(page, "doctor", "letters.waiting")
    go(page, "audit", "group.reset")


@pytest.mark.timeout(60)
def test_names_of_javascript_itself_break_no_page(strange):
    for name in STRANGE:
        go(strange, "groups", name)
    strange.wait_for_function(DRAWN, arg=len(STRANGE), timeout=PATIENCE)
    strange.wait_for_function("() => document.getElementById('age').textContent === 'live'", timeout=PATIENCE)


@pytest.mark.timeout(60)
def test_a_search_that_did_not_come_to_the_end_says_so(strange):
    found = {"events": [], "scanned": 100_000, "next": None, "incomplete": True}
    strange.route("**/api/events?*", lambda route: route.fulfill(json=found))
    text = go(strange, "topics/constructor", "Not everything was searched")
    assert "0 shown, 100,000 read; not everything was searched" in text


@pytest.mark.timeout(60)
def test_pages_are_used_by_keyboard_and_at_phone_width(page, shop):
    page.set_viewport_size({"width": 390, "height": 844})
    for path in ("", "topics", "groups", "pipelines", "doctor"):
        go(page, path, "")
        page.wait_for_function(
            "() => document.getElementById('age').textContent === 'live'", timeout=PATIENCE
        )
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, path
    page.set_viewport_size({"width": 1280, "height": 900})
    page.keyboard.press("g")
    page.keyboard.press("t")
    page.wait_for_selector("h1:text('Topics')")
    page.keyboard.press("/")
    page.keyboard.type(f"{shop}.stock")
    page.wait_for_function("() => document.querySelectorAll('tbody tr').length === 1", timeout=PATIENCE)
    unnamed = page.evaluate(
        """() => [...document.querySelectorAll('button, input, select, a')].filter(each =>
            !(each.innerText || each.getAttribute('aria-label') || each.labels?.length)).length"""
    )
    assert unnamed == 0


@pytest.mark.long
@pytest.mark.timeout(120)
def test_names_of_200_letters_fit_a_phone(page, settings, shop):
    name = f"{shop}.{'long' * 45}"
    Broker(settings).ensure(name, 1, {})
    letters = DeadLetters(settings)
    letters.send(DeadLetter(name, 0, 0, "unreadable" * 20, datetime.now(UTC), b"bad", b"{}"))
    letters.flush()
    page.set_viewport_size({"width": 390, "height": 844})
    for path in ("topics", f"topics/{name}", "doctor"):
        go(page, path, "")
        if path == "doctor":
            page.click("text=Examine again")
        page.wait_for_function("name => document.body.innerText.includes(name)", arg=name, timeout=30_000)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, path


@pytest.mark.timeout(180)
@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.long)])
def test_pages_are_accessible(page, shop, scheme):
    """What axe-core finds wrong in a page as it is drawn: contrasts, names, roles, order of headings."""
    page.emulate_media(color_scheme=scheme)
    pages = {
        "": "Live map",
        "topics": f"{shop}.orders",
        f"topics/{shop}.orders": "Partitions",
        "groups": f"{shop}-billing",
        f"groups/{shop}-billing": "Lag of each partition",
        "pipelines": "bill",
        f"pipelines/{shop}.bill": "Where a batch's time goes",
        "schemas": f"{shop}.stock-value",
        f"schemas/{shop}.stock-value": "Version 1",
        "captures": "Captures",
        "views": "penstock console -m shop.py",
        "doctor": "letters.waiting",
        "audit": "",
    }
    for path, text in pages.items():
        go(page, path, text)
        found = Axe().run(page)
        assert found.violations_count == 0, f"{path}: {found.generate_report()}"
