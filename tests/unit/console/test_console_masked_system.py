"""What the system and the doctor quote of events is as hidden as the events themselves."""

import json
import time
from dataclasses import asdict, replace

import pytest
from tests.console import LIVE, client
from tests.observed_system import AT, capture, flow, system

from penstock.console.masked_system import masked
from penstock.console.masking import HIDDEN, Masks
from penstock.console.server import Watched
from penstock.ops.doctor.checks import diagnose
from penstock.ops.doctor.probes import Probes
from penstock.ops.doctor.topic_sample import SampledRecord, TopicSample
from penstock.ops.model import DeadLetterStatus
from penstock.pipeline.flow_status import Trouble

SECRET = "ann@example.com"
TROUBLE = f"can't merge: {SECRET} is no number"
PATHS = (
    "doctor",
    "flow?name=shop.bill",
    "topic?name=orders",
    "topic?name=orders.dead-letters",
    "capture?name=shop",
)


def quoting():
    """A system of which every text quotes an event."""
    troubled = flow(state="failed", troubles=(Trouble(AT - 9, TROUBLE), Trouble(AT - 1, TROUBLE)))
    return replace(
        system(),
        at=time.time(),
        flows=(troubled,),
        captures=(capture(error=TROUBLE),),
        replicas=(replace(system().replicas[0], error=f"{TROUBLE}!"),),
        archives=(replace(system().archives[0], error=TROUBLE),),
        dead_letters=(DeadLetterStatus("orders.dead-letters", "orders", 4, AT, f"{SECRET} is no number"),),
    )


def records(**more):
    keys = (SECRET if n % 3 else f"k{n}" for n in range(300))
    return tuple(SampledRecord(n % 2, n, AT + n, key, SECRET, **more) for n, key in enumerate(keys))


def probes():
    sampled = TopicSample("orders", (*records(), *records(error=TROUBLE)))
    return Probes(samples={"orders": sampled}, events=("orders",))


def watched():
    return Watched(quoting, lambda: (quoting(), probes()))


def shown(masks):
    """All that the console shows of the system."""
    with client(watched=watched(), masks=Masks.of(masks)) as web:
        found = [web.get(f"/api/{path}").text for path in PATHS]
        with web.websocket_connect(LIVE) as socket:
            return "\n".join([*found, *(socket.receive_text() for _ in range(2))])


def test_with_masks_nothing_quotes_what_is_hidden():
    assert SECRET in shown("")
    found = shown("email, id, orders:@key")
    assert SECRET not in found
    assert HIDDEN in found


def test_what_was_found_is_the_same_under_masks():
    open, hidden = (
        masked(quoting(), diagnose(quoting(), probes()), Masks.of(each))[1] for each in ("", "card")
    )
    assert [(each.id, each.subject, each.severity) for each in hidden] == [
        (each.id, each.subject, each.severity) for each in open
    ]
    assert {
        "flow.failed",
        "letters.waiting",
        "copies.behind",
        "keys.hot",
        "schema.missing-events",
        "output.duplicates",
    } <= {each.id for each in hidden}


@pytest.mark.parametrize(("rule", "is_hidden"), [("orders:@key", True), ("payments:@key", False)])
def test_a_hot_key_is_hidden_where_keys_are(rule, is_hidden):
    findings = masked(quoting(), diagnose(quoting(), probes()), Masks.of(rule))[1]
    (hot,) = [each for each in findings if each.id == "keys.hot"]
    assert (SECRET in json.dumps(asdict(hot))) is not is_hidden
    assert hot.evidence["key"] == (HIDDEN if is_hidden else SECRET)
    assert "has 67% of its last" in hot.summary


@pytest.mark.parametrize(
    ("source", "rule", "is_hidden"),
    [("orders", "orders:email", True), ("orders", "orders:@key", True), ("orders", "users:email", False),
     ("shop.bill", "users:email", True)],
)  # fmt: skip
def test_the_reason_of_a_dead_letter_is_hidden_as_its_source_is(source, rule, is_hidden):
    waiting = DeadLetterStatus("letters", source, 4, AT, f"{SECRET} is no number")
    found, findings = masked(
        replace(system(), dead_letters=(waiting,)),
        diagnose(replace(system(), dead_letters=(waiting,)), Probes()),
        Masks.of(rule),
    )
    assert found.dead_letters[0].reason == (HIDDEN if is_hidden else waiting.reason)
    (letters,) = [each for each in findings if each.id == "letters.waiting"]
    assert (SECRET in json.dumps(asdict(letters))) is not is_hidden


def test_without_masks_nothing_is_changed():
    findings = diagnose(quoting(), probes())
    system = quoting()
    assert masked(system, findings, Masks()) == (system, findings)
