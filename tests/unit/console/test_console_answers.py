"""What the pages are given, on a recorded system."""

import re
import time
from dataclasses import replace

import pytest
from tests.console import LIVE, client
from tests.observed_system import AT, flow, system, topic

from penstock.console.pages import page_files
from penstock.console.server import Watched
from penstock.console.snapshot import captured_topics, snapshot
from penstock.console.trends import KEPT, Trends
from penstock.ops.doctor.probes import Disk, Probes
from penstock.ops.doctor.topic_sample import SampledRecord, TopicSample
from penstock.ops.model import PartitionRange, System


@pytest.fixture
def web():
    with client() as made:
        yield made


def test_a_snapshot_has_the_systems_figures(web):
    with web.websocket_connect(LIVE) as socket:
        assert set(socket.receive_json()["history"]) == {"at", "rates", "lags"}
        found = socket.receive_json()["snapshot"]
    (one,) = found["topics"]
    assert (one["name"], one["events"], one["end"], one["letters"]) == ("orders", 140, 150, 4)
    (billing,) = found["groups"]
    assert (billing["events"], billing["seconds"], billing["judgement"]) == (40, 30.0, "warning")
    (bill,) = found["flows"]
    assert (bill["label"], bill["state"], bill["p50"], bill["p99"]) == ("shop.bill", "running", 0.1, 0.5)
    assert found["health"]["state"] in ("warning", "error")
    assert found["captures"][0]["last_event"] == AT


def test_all_who_watch_get_the_same_looks():
    looks = []

    def look():
        looks.append(time.time())
        return replace(system(), at=time.time())

    with client(watched=Watched(look, lambda: (system(), Probes()))) as web:
        with web.websocket_connect(LIVE) as one, web.websocket_connect(LIVE) as other:
            for socket in (one, other):
                socket.receive_json()
            first = {one.receive_json()["snapshot"]["at"] for _ in range(2)}
            second = {other.receive_json()["snapshot"]["at"] for _ in range(2)}
        assert first & second
        assert len(looks) <= 4


def test_details_of_a_topic_and_who_reads_it(web):
    found = web.get("/api/topic", params={"name": "orders"}).json()
    assert [each["partition"] for each in found["partitions"]] == [0, 1]
    assert found["groups"] == [
        {
            "group": "billing",
            "kind": "consumer",
            "members": 1,
            "judgement": "warning",
            "events": 40,
            "seconds": 30.0,
        }
    ]
    assert found["readers"] == ["shop.bill"]
    assert found["dead_letters"][0]["reason"] == "amount is missing"
    assert found["form"] is None
    assert found["closed"] == "no module declares this topic: start the console with -m"


def test_details_of_a_group_a_flow_and_a_capture(web):
    group = web.get("/api/group", params={"name": "billing"}).json()
    assert (group["events"], group["lags"][0]["trend"], group["flow"]) == (40, [40], None)
    found = web.get("/api/flow", params={"name": "shop.bill"}).json()
    assert found["percentiles"] == {"p50": 0.1, "p90": 0.25, "p99": 0.5}
    assert found["troubles"][0]["text"] == "the broker went away"
    capture = web.get("/api/capture", params={"name": "shop"}).json()
    assert (capture["behind"], capture["replicas"][0]["replica"]) == (2048, "copy")


@pytest.mark.parametrize("kind", ["topic", "group", "flow", "capture"])
def test_what_is_not_there_is_said(web, kind):
    answer = web.get(f"/api/{kind}", params={"name": "<script>"})
    assert (answer.status_code, answer.json()["id"]) == (404, f"console.unknown-{kind}")
    assert web.get(f"/api/{kind}").status_code == 400


def test_findings_have_their_evidence(web):
    found = web.get("/api/doctor").json()["findings"]
    ids = {each["id"] for each in found}
    assert "letters.waiting" in ids
    assert all(each["hint"] for each in found if each["severity"] != "info")


def test_what_the_doctor_knows_already_costs_no_examination():
    examined = []
    watched = Watched(system, lambda: examined.append(1) or (system(), Probes()))
    with client(watched=watched) as web:
        found = web.get("/api/doctor", params={"known": "1"}).json()["findings"]
    assert "letters.waiting" in {each["id"] for each in found}
    assert examined == []


def test_a_flow_that_was_swapped_is_shown_by_its_newest_word():
    """Before, the page asked for generation 0 and found nothing."""
    swapped = replace(system(), flows=(flow(generation=7, at=AT, version="2"), flow(generation=5, at=AT - 9)))
    with client(watched=Watched(lambda: swapped, lambda: (swapped, Probes()))) as web:
        assert web.get("/api/flow", params={"name": "shop.bill"}).json()["version"] == "2"
        other = web.get("/api/flow", params={"name": "shop.bill", "generation": "5"}).json()
        assert other["generation"] == 5


def test_the_page_asks_for_all_of_its_modules_at_once():
    """A browser that learns of each module from the one that imports it goes back and forth for each."""
    files = page_files()
    page = files["index.html"][0].decode()
    asked = set(re.findall(r'(?:modulepreload" href|module" src)="/static/([^"]+)"', page))
    assert asked == {name for name in files if name.endswith(".js")}


def test_a_finding_may_name_what_utf8_can_not_hold():
    twice = tuple(SampledRecord(0, n, AT + n, id="\ud83d") for n in range(2))
    probes = Probes(samples={"orders": TopicSample("orders", twice)}, events=("orders",))
    with client(watched=Watched(system, lambda: (system(), probes))) as web:
        found = {each["id"]: each for each in web.get("/api/doctor").json()["findings"]}
    assert found["output.duplicates"]["evidence"]["example"] == "\\ud83d"


def test_a_broker_that_is_away_is_said_and_looking_goes_on():
    def look():
        return System(time.time(), unanswered=("topics: no answer in 6 s",))

    watched = Watched(look, lambda: (system(), Probes()))
    with client(watched=watched) as web, web.websocket_connect(LIVE) as socket:
        socket.receive_json()
        found = socket.receive_json()["snapshot"]
    assert found["unanswered"] == ["topics: no answer in 6 s"]


def looked(at, end, name="orders"):
    grown = replace(topic(name), partitions={0: PartitionRange(0, end)})
    return System(at, topics=(grown,))


def test_a_rate_is_of_the_last_seconds():
    trends = Trends()
    for number in range(30):
        trends.add(looked(100.0 + number, 50 * number))
    assert trends.rate("orders") == pytest.approx(50)
    assert trends.rate("nothing") == 0
    trends.add(looked(130.0, 0))  # made again
    assert trends.history()["rates"]["orders"][-1] == 0


def test_trends_are_bounded():
    trends = Trends()
    for number in range(3 * KEPT):
        trends.add(looked(float(number), number))
    assert len(trends.history()["at"]) == KEPT


def test_a_snapshot_of_two_hundred_topics_is_small_and_quick():
    topics = tuple(topic(f"topic-{number}") for number in range(200))
    flows = tuple(flow(f"shop.flow-{number}") for number in range(30))
    many, trends = replace(system(), topics=topics, flows=flows), Trends()
    trends.add(many)
    began = time.process_time()
    found = snapshot(many, trends, [])
    assert time.process_time() - began < 0.5
    assert len(str(found)) < 150_000


def test_a_look_that_fails_does_not_end_the_console():
    looks = iter([RuntimeError("a client broke"), system()])

    def look():
        found = next(looks, system())
        if isinstance(found, Exception):
            raise found
        return replace(found, at=time.time())

    watched = Watched(look, lambda: (system(), Probes()))
    with client(watched=watched) as web, web.websocket_connect(LIVE) as socket:
        socket.receive_json()
        assert socket.receive_json()["snapshot"]["topics"]


def test_the_topics_of_a_capture_are_those_of_its_tables():
    names = (
        "shop.public.orders",
        "shop.public.orders.dead-letters",
        "shop.events",
        "shops.public.x",
        "shop.a.sums",
    )
    found = replace(
        system(), topics=tuple(topic(each) for each in names), flows=(flow(writes=("shop.a.sums",)),)
    )
    assert [each.name for each in captured_topics("shop", found)] == ["shop.public.orders"]


def test_the_health_counts_what_the_last_examination_has_found():
    disk = Disk("/data", 100, 1)
    watched = Watched(lambda: replace(system(), at=time.time()), lambda: (system(), Probes(disks=(disk,))))
    with client(watched=watched) as web, web.websocket_connect(LIVE) as socket:
        socket.receive_json()
        before = socket.receive_json()["snapshot"]["health"]["counts"]
        assert "disk.full" in {each["id"] for each in web.get("/api/doctor").json()["findings"]}
        for _ in range(3):
            after = socket.receive_json()["snapshot"]["health"]["counts"]
    assert sum(after.values()) == sum(before.values()) + 1
