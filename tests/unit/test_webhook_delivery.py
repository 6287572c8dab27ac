"""Deliveries over a pretended clock: who is to blame, what is retried, when the circuit opens and closes."""

import pytest

from penstock.errors import SinkError, TargetError
from penstock.targets.webhook import Blame, Circuit, Retries
from penstock.targets.webhook.circuit import CircuitState
from penstock.targets.webhook.client import Answer
from penstock.targets.webhook.delivery import Delivery, Rules
from penstock.targets.webhook.event import Event, Request, requests_of
from penstock.targets.webhook.retries import retry_after

LOST = Answer(None, "broke off")
REFUSED_CONNECTION = Answer(None, "can't be reached", left=False)


def answer(status, after=None):
    return Answer(status, f"answered {status}", "text", after)


class World:
    """A receiver that answers by a function of (ids, attempt), and a clock that sleeping moves."""

    def __init__(self, answers, **rules):
        self.answers, self.now, self.slept, self.sent, self.taken = answers, 1000.0, [], [], []
        self.delivery = Delivery(
            self.post, Rules(**rules), "here", sleep=self.sleep, clock=lambda: self.now, chance=lambda: 1.0
        )

    def post(self, request, attempt):
        ids = [event.id for event in request.events]
        self.sent.append((self.now, ids, attempt))
        found = self.answers(ids, attempt, self.now)
        found = answer(found) if isinstance(found, int) else found
        if found.is_success:
            self.taken += ids
        return found

    def sleep(self, seconds):
        self.slept.append(seconds)
        self.now += seconds

    def deliver(self, *ids, size=None, key=lambda id: id):
        events = [Event(id, key(id), f'{{"id":"{id}"}}') for id in ids]
        return list(self.delivery.deliver(requests_of(events, size, "json")))


def dead(settled):
    return [each.request.events[0].id for each in settled if each.failure]


def test_everything_is_taken_in_order():
    world = World(lambda *_: 200)
    assert dead(world.deliver(*"abc")) == []
    assert world.taken == ["a", "b", "c"]
    assert world.slept == []


def test_a_refused_event_goes_to_the_dead_letters_at_once():
    world = World(lambda ids, *_: 422 if ids == ["b"] else 204)
    settled = world.deliver(*"abc")
    assert dead(settled) == ["b"]
    assert settled[1].failure.attempts == 1
    assert world.taken == ["a", "c"]


def test_a_passing_failure_is_retried_with_growing_pauses():
    world = World(lambda ids, attempt, _: 500 if attempt < 4 else 200)
    assert dead(world.deliver("a")) == []
    assert world.slept == [0.5, 1.0, 2.0]
    assert [attempt for _, _, attempt in world.sent] == [1, 2, 3, 4]


def test_retry_after_is_honoured_up_to_the_longest_pause():
    world = World(lambda ids, attempt, _: answer(429, [7.0, 3600.0][attempt - 1]) if attempt < 3 else 200)
    assert dead(world.deliver("a")) == []
    assert world.slept == [7.0, 30.0]


def test_jitter_is_full():
    retries = Retries(backoff="1 second", longest="8 seconds")
    assert [retries.pause(3, None, chance) for chance in (0.0, 0.5, 1.0)] == [0.0, 2.0, 4.0]
    assert retries.pause(1000, None, 1.0) == 8.0


@pytest.mark.parametrize("poison", [500, 503, 408, LOST])
def test_one_event_that_always_fails_is_given_up_and_does_not_open_the_circuit(poison):
    world = World(lambda ids, *_: poison if ids == ["b"] else 200)
    settled = world.deliver(*"abcd")
    assert dead(settled) == ["b"]
    assert settled[1].failure.attempts == 5
    assert [each.request.events[0].id for each in settled] == [*"abcd"]
    assert world.delivery.state == CircuitState()


def test_the_last_event_of_a_batch_is_given_up_though_nobody_followed():
    world = World(lambda *_: 500)
    assert dead(world.deliver("a")) == ["a"]
    assert world.delivery.state.failures == 1


def test_failures_of_the_endpoint_open_the_circuit_and_burn_no_event():
    """It is down for 40 seconds: three are suspected, nothing is sent for a rest, then all are taken."""
    world = World(
        lambda ids, attempt, now: 200 if now > 1040 else 500,
        retries=Retries(attempts=2, backoff="1 second"),
        circuit=Circuit(failures=3, rest="15 seconds", wait="1 minute"),
    )
    assert dead(world.deliver(*"abcdef")) == []
    assert sorted(world.taken) == [*"abcdef"]
    gaps = [later - before for (before, *_), (later, *_) in zip(world.sent, world.sent[1:], strict=False)]
    assert gaps.count(15.0) == 3
    assert world.delivery.state == CircuitState()


@pytest.mark.parametrize("failure", [401, 403, 404, 429, 301, REFUSED_CONNECTION])
def test_what_is_surely_the_endpoints_fault_waits_and_fails_the_batch(failure):
    world = World(lambda *_: failure, circuit=Circuit(failures=4, rest="15 seconds", wait="1 minute"))
    with pytest.raises(SinkError, match=r"webhook here .*4 failures in a row.* from event 'a' on"):
        world.deliver("a", "b")
    assert len(world.sent) == 4 + 4
    assert world.now - 1000 < 75
    assert world.delivery.is_open


def test_an_open_circuit_is_remembered_and_its_first_request_is_a_probe():
    world = World(lambda *_: 200)
    world.delivery.state = CircuitState(5, 1010.0)
    assert dead(world.deliver("a", "b")) == []
    assert world.slept == [10.0]
    assert world.delivery.state == CircuitState()


def test_an_event_that_is_never_taken_does_not_keep_the_circuit_open():
    """The endpoint is well again, but for the event that is first in line."""
    world = World(
        lambda ids, attempt, now: 200 if now > 1020 and ids != ["a"] else 500,
        retries=Retries(attempts=1),
        circuit=Circuit(failures=3, rest="10 seconds", wait="10 minutes"),
    )
    settled = world.deliver(*"abcde")
    assert dead(settled) == ["a"]
    assert [each.request.events[0].id for each in settled] == [*"abcde"]
    assert sorted(world.taken) == [*"bcde"]


def test_no_probe_overtakes_another_event_of_its_key():
    world = World(
        lambda ids, attempt, now: 200 if now > 1030 else 500,
        retries=Retries(attempts=1),
        circuit=Circuit(failures=3, rest="10 seconds", wait="10 minutes"),
    )
    assert dead(world.deliver("a1", "a2", "b1", "a3", key=lambda id: id[0])) == []
    assert [id for id in world.taken if id[0] == "a"] == ["a1", "a2", "a3"]


def test_whose_fault_a_status_is_can_be_declared():
    world = World(lambda ids, *_: 404 if ids == ["b"] else 200, blame=Blame(event=(404,)))
    assert dead(world.deliver(*"abc")) == ["b"]
    world = World(lambda *_: 400, blame=Blame(endpoint=(400,)))
    with pytest.raises(SinkError, match="answered 400"):
        world.deliver("a")


def test_a_refused_batch_is_taken_apart():
    world = World(lambda ids, *_: 413 if "c" in ids else 200)
    settled = world.deliver(*"abcdef", size=3)
    assert dead(settled) == ["c"]
    assert world.taken == ["a", "b", "d", "e", "f"]


def test_at_most_once_sends_nothing_again_that_may_have_arrived():
    for failure in (LOST, 500, 408):
        world = World(lambda ids, *_, failure=failure: failure if ids == ["b"] else 200, once=True)
        assert dead(world.deliver(*"abc")) == ["b"]
        assert [ids for _, ids, _ in world.sent] == [["a"], ["b"], ["c"]]
    world = World(lambda ids, attempt, _: REFUSED_CONNECTION if attempt < 3 else 200, once=True)
    assert dead(world.deliver("a")) == []


def test_at_most_once_gives_the_rest_of_a_batch_up_when_it_has_waited_too_long():
    world = World(lambda *_: REFUSED_CONNECTION, once=True, circuit=Circuit(2, "10 seconds", "20 seconds"))
    assert dead(world.deliver(*"abc")) == ["a", "b", "c"]
    world = World(lambda *_: LOST, once=True, circuit=Circuit(2, "10 seconds", "20 seconds"))
    assert dead(world.deliver(*"abcdefg")) == [*"abcdefg"]
    assert [at for at, *_ in world.sent] == [1000.0, 1000.0, 1010.0, 1020.0]


def test_headers_hold_what_ids_can_not():
    def key(id):
        return Request((Event(id, None, "{}"),)).id

    assert key("order-1:a/b") == "order-1:a/b"
    assert key("a\r\nX-Evil: 1") == "a%0D%0AX-Evil:%201"
    assert key("é%") == "%C3%A9%25"
    assert len(key("x" * 10_000)) == 64


@pytest.mark.parametrize("text", ["", "-1", "soon", "1e9", "٣", "9" * 400])
def test_a_strange_retry_after_is_none(text):
    assert retry_after(text, 0.0) is None


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Retries(attempts=0), "attempts is 0"),
        (lambda: Retries(backoff="1 hour"), "longer than longest"),
        (lambda: Circuit(failures=0), "failures is 0"),
        (lambda: Circuit(rest="1 hour"), "longer than a batch waits"),
        (lambda: Blame(event=(404,), endpoint=(404,)), "status 404 is blamed"),
        (lambda: Blame(event=(200,)), "holds 200"),
        (lambda: Blame(event=404), "expected a tuple"),
    ],
)
def test_rules_check_themselves(make, said):
    with pytest.raises(TargetError, match=said):
        make()
