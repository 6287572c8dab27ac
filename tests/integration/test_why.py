"""Why: the events behind results, of flows on a real log and of every application."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from random import Random

import pytest
from tests.integration.explained import Sale, by_minute, explained, large, sales, sprees
from tests.integration.why_cases import CASES, Asked

from penstock.errors import FlowError
from penstock.log import Broker, Producer, apply
from penstock.ops.why import Question, exported, why
from penstock.pipeline import Runner
from penstock.process import read
from penstock.testing.recomputed import plain

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.fixture(scope="module")
def sold(settings, spark):
    """Random sales, and the flows' results of them."""
    random, made = Random(7), []
    for number in range(150):
        at = NOON + timedelta(seconds=number + random.random())
        amount = Decimal(random.randrange(1, 100))
        made.append(Sale(f"c{random.randrange(5)}", amount, at, id=f"s{number}"))
    apply([sales, large, sprees], Broker(settings))
    for some in (made[:85], made[85:]):
        with Producer(settings) as producer:
            producer.send_all(sales, some)
        with Runner(explained, settings, spark=spark, once=True) as runner:
            assert runner.wait(60)
    return made


def results(spark, settings, topic, count):
    found = [plain(row) for row in read(spark, topic, settings).collect()]
    return Random(1).sample(found, count)


def ids(answer):
    return [event.values["id"] for event in answer.events]


def test_a_result_of_one_event_is_of_that_event(settings, spark, sold):
    for result in results(spark, settings, large, 2):
        at = result["_source"]
        answer = why(
            Question("why.large", record=(at["partition"], at["offset"])), [explained], settings, spark
        )
        [event] = [each for each in sold if (each.customer, each.at) == (result["customer"], result["at"])]
        assert (answer.proved, answer.minimal, ids(answer)) == (True, True, [event.id])
        assert (answer.made.flow, answer.made.version) == ("explained.is_large", "v2")
        assert answer.made.source == answer.events[0].place


@pytest.mark.long
def test_a_rule_over_recent_events_is_of_all_that_it_looked_at(settings, spark, sold):
    [result] = results(spark, settings, sprees, 1)
    answer = why(Question("why.sprees", where=f"id = '{result['id']}'"), [explained], settings, spark)
    since = result["at"] - timedelta(seconds=10)
    before = [
        each for each in sold if each.customer == result["customer"] and since <= each.at <= result["at"]
    ]
    assert (answer.proved, answer.minimal) == (True, True)
    assert ids(answer) == [each.id for each in before]
    assert len(before) == result["sales"]


def test_a_window_in_a_table_is_of_its_events_and_runs_as_a_test(settings, spark, sold, tmp_path):
    customer, start = "c3", NOON + timedelta(minutes=1)
    inside = [e for e in sold if e.customer == customer and start <= e.at < start + timedelta(minutes=1)]
    answer = why(Question("why_minutes", (customer, "2026-01-01T12:01:00Z")), [explained], settings, spark)
    assert (answer.proved, answer.minimal, ids(answer)) == (True, True, [each.id for each in inside])
    flow = explained.flows["by_minute"]
    case = exported(answer, flow, "tests.integration.explained", "explained")
    space = {}
    exec(compile(case, "case", "exec"), space)
    space["test_the_result_comes_of_these_events"](spark)
    space["RESULT"]["spent"] += 1
    with pytest.raises(AssertionError):
        space["test_the_result_comes_of_these_events"](spark)
    assert by_minute is flow.function


def test_what_is_not_there_is_refused(settings, spark, sold):
    with pytest.raises(FlowError, match="no flow of the modules writes 'elsewhere'"):
        why(Question("elsewhere", ("c1",)), [explained], settings, spark)
    with pytest.raises(FlowError, match="holds no such result"):
        why(Question("why.large", ("nobody",)), [explained], settings, spark)
    with pytest.raises(FlowError, match="1 key columns, and 2 are given"):
        why(Question("why.large", ("c1", "c2")), [explained], settings, spark)
    with pytest.raises(FlowError, match="can't be used on"):
        why(Question("why.large", where="nonsense = 1"), [explained], settings, spark)


@pytest.mark.long
@pytest.mark.timeout(400)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_it_is_right_for_random_results_of_every_application(spark, case):
    Asked(case, spark).check(3, seed=2)
