"""Requests for notifications: what is due is known, and the requests are as unruly as they should be."""

import time
import urllib.error
import urllib.request
from collections import Counter
from datetime import timedelta

import pytest

from penstock.apps.notifications.receiver import FAILS, LOSES, Receiver
from penstock.apps.notifications.traffic import SERVICES, Traffic, round_of
from penstock.settings import Secret
from penstock.targets.webhook.signature import signature_headers

COUNT = 10_000
DAY = timedelta(hours=24)
SECRET = Secret("of both sides")


@pytest.fixture(scope="module")
def sent():
    traffic = Traffic(seed=7)
    return traffic, [traffic.next() for _ in range(COUNT)]


def test_the_same_seed_gives_the_same_requests(sent):
    again = Traffic(seed=7)
    assert [again.next() for _ in range(COUNT)] == sent[1]


def test_a_round_is_within_a_day_and_another_one_is_not(sent):
    rounds = {}
    for request in sent[1]:
        rounds.setdefault((request.user, request.occasion), {}).setdefault(round_of(request.id), []).append(
            request.at
        )
    assert any(len(each) == 2 for each in rounds.values())
    for each in rounds.values():
        assert all(max(times) - min(times) < DAY for times in each.values())
        if len(each) == 2:
            first, second = each.values()
            assert min(second) - max(first) > DAY


def test_what_is_due_is_what_was_asked_for(sent):
    traffic, requests = sent
    assert traffic.due.keys() == {round_of(request.id) for request in requests}
    assert len(requests) > 1.8 * len(traffic.due)
    assert {request.service for request in requests} == {*SERVICES}


def test_some_are_late_some_are_the_same_message_twice_some_of_one_moment(sent):
    highest, late = sent[1][0].at, timedelta(0)
    for request in sent[1]:
        highest = max(highest, request.at)
        late = max(late, highest - request.at)
    assert timedelta(hours=4) < late < timedelta(hours=7)
    assert max(Counter(request.id for request in sent[1]).values()) == 2
    moments = Counter((round_of(request.id), request.at) for request in sent[1])
    assert sum(count > 1 for count in moments.values()) > 100


def post(receiver, key, body=b'{"user": "ann"}', secret=SECRET):
    headers = signature_headers(secret, key, int(time.time()), body) | {"Idempotency-Key": key}
    with urllib.request.urlopen(urllib.request.Request(receiver.url, body, headers), timeout=5) as answer:
        return answer.status


def test_the_receiver_knows_duplicates_and_fails_now_and_then():
    with Receiver(SECRET) as receiver:
        failures = Counter()
        for number in range(LOSES + 1):
            try:
                assert post(receiver, f"k{number // 2}") == 200
            except urllib.error.HTTPError as error:
                failures[error.code] += 1
            except OSError:
                failures["no answer"] += 1
        assert failures == {500: LOSES // FAILS, "no answer": 1}
        assert len(receiver.taken) == LOSES // 2 + 1
        assert receiver.counts["duplicates"] == LOSES + 1 - LOSES // FAILS - len(receiver.taken)


def test_the_receiver_takes_nothing_that_is_not_signed():
    with Receiver(SECRET) as receiver:
        with pytest.raises(urllib.error.HTTPError, match="401"):
            post(receiver, "k1", secret=Secret("of somebody else"))
        assert (receiver.counts["forged"], receiver.taken) == (1, {})
