"""A fix is carried out only if an examination that is made for it still offers it."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import datetime

import pytest
from tests.console import NOWHERE, client, csrf
from tests.observed_system import flow, system

from penstock.console import examination as examining
from penstock.console.examination import FRESH, Examination
from penstock.console.masking import Masks
from penstock.console.server import Watched
from penstock.errors import TopicError
from penstock.events import Event
from penstock.log import Topic
from penstock.log.broker import TopicState
from penstock.ops.doctor import fixing
from penstock.ops.doctor.declared import Declared
from penstock.ops.doctor.finding import Fix
from penstock.ops.doctor.probes import Held, OpenTransaction, Probes

ID = "penstock.shop.bill.0"
ASKED = {"action": "doctor.fix", "fix": "abort-transaction", "subject": ID}


@dataclass(frozen=True)
class Sale(Event):
    user: str
    at: datetime


class Patient:
    """A system in which a transaction hangs; its flow has failed, until it is started again."""

    def __init__(self):
        self.state, self.examined = "failed", 0

    def examine(self):
        self.examined += 1
        now = replace(system(), flows=(flow(state=self.state),), at=time.time())
        held = Held("orders", 0, 50, 90, now.at - 300)
        owner = OpenTransaction(ID, now.at - 300, 900.0, (("orders", 0),))
        return now, Probes(held=(held,), transactions=(owner,))


SALES = Topic("sales", Sale, key="user", partitions=1, retention="1 day")


@pytest.fixture
def patient():
    return Patient()


@pytest.fixture
def fixes(monkeypatch):
    """The fixes that are carried out."""
    done = []
    monkeypatch.setattr(examining, "carry_out", lambda fix, *_: done.append(fix) or "done")
    return done


def test_a_fix_is_shown_of_the_last_examination_and_carried_out_of_a_new_one(patient, fixes):
    with client(watched=Watched(system, patient.examine)) as web:
        headers = csrf(web)
        web.get("/api/doctor")
        shown = web.post("/api/actions", json={**ASKED, "dry_run": True}, headers=headers)
        assert (shown.status_code, patient.examined, fixes) == (200, 1, [])
        done = web.post("/api/actions", json={**ASKED, "dry_run": False}, headers=headers)
        assert (done.status_code, patient.examined) == (200, 2)
    assert [(each.action, each.subject) for each in fixes] == [("abort-transaction", ID)]


def test_a_flow_that_lives_again_is_not_fenced(patient, fixes):
    with client(watched=Watched(system, patient.examine)) as web:
        headers = csrf(web)
        assert web.get("/api/doctor").json()["findings"]
        patient.state = "running"
        answer = web.post("/api/actions", json={**ASKED, "dry_run": False}, headers=headers)
        assert "no finding has the fix" in answer.json()["message"]
    assert fixes == []


def test_whoever_asks_meanwhile_shares_an_examination():
    begun, going = [], threading.Event()

    def examine():
        begun.append(time.monotonic())
        going.wait(5)
        return system(), Probes()

    found = Examination(examine, Masks())
    with ThreadPoolExecutor(9) as pool:
        first = pool.submit(found.document, time.monotonic())
        while not begun:
            time.sleep(0.01)
        others = [pool.submit(found.document, time.monotonic()) for _ in range(8)]
        going.set()
        assert [each.result()["at"] for each in (first, *others)] == [system().at] * 9
    assert len(begun) == 2  # those who asked while the first one was at work get what began after that
    found.document(time.monotonic() - FRESH)
    assert len(begun) == 2


class Broker:
    """A broker on which somebody has made the topic, or nobody."""

    listener = None

    def __init__(self, config):
        self._config, self.changed = config, []

    def topics(self, names):
        state = TopicState("sales", 1, 1, self._config)
        return {} if self._config is None else {name: state for name in names if name == "sales"}

    def create(self, name, *_):
        self.changed.append(("create", name))

    def configure(self, name, changes):
        self.changed.append(("configure", changes))


@pytest.mark.parametrize(
    ("config", "changed"),
    [
        (None, [("create", "sales")]),
        ({**SALES.config, "retention.ms": "60000"}, [("configure", {"retention.ms": "86400000"})]),
        (SALES.config, []),
    ],
)
def test_a_topic_is_applied_where_that_is_safe_now(tmp_path, monkeypatch, config, changed):
    broker = Broker(config)
    assert fixed(tmp_path, monkeypatch, broker) == "done"
    assert broker.changed == changed


@pytest.mark.parametrize("config", [{}, {"retention.ms": "-1"}, {"retention.ms": "172800000"}])
def test_a_topic_that_somebody_made_meanwhile_loses_no_events(tmp_path, monkeypatch, config):
    broker = Broker(config)
    with pytest.raises(TopicError, match="not safe any more"):
        fixed(tmp_path, monkeypatch, broker)
    assert broker.changed == []


def fixed(tmp_path, monkeypatch, broker):
    monkeypatch.setattr(fixing, "Broker", lambda _: broker)
    fix = Fix("apply-topic", "sales", "penstock topics apply (sales only)")
    return fixing.carry_out(fix, replace(NOWHERE, data=tmp_path), Declared((SALES,)))
