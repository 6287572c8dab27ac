"""Headers of an event that its results have, too: a trace goes through flows."""

from dataclasses import replace

import pytest
from tests.integration.shop import Sale, make_sales
from tests.integration.test_flows import copying, run_once
from tests.integration.test_sink_kafka import read

from penstock.errors import FlowError
from penstock.log import Broker, Producer, Topic, apply

TRACE = ("traceparent", b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")


@pytest.fixture
def topics(settings, unique):
    made = [Topic(f"{name}.{unique}", Sale, key="customer") for name in ("first", "second", "third")]
    apply(made, Broker(settings))
    return made


def headers(settings, topic):
    found = [dict(message.headers()) for message in read(settings, topic.name)]
    return sorted((each.get("traceparent", b""), {*each} - {"penstock.made-by"}) for each in found)


@pytest.mark.timeout(200)
def test_a_trace_goes_through_two_flows(settings, spark, topics, unique, tmp_path):
    place, (first, second, third) = replace(settings, data=tmp_path), topics
    with Producer(settings) as producer:
        one, other = make_sales(2, seed=1)
        producer.send(first, one, headers=[TRACE, ("other", b"1")])
        producer.send(first, other)
    traced = {"headers": ("traceparent", "tracestate")}
    run_once(copying(f"a{unique}", first, second, **traced), place, spark)
    run_once(copying(f"b{unique}", second, third, **traced), place, spark)
    passed = [(b"", set()), (TRACE[1], {"traceparent"})]
    assert headers(place, second) == headers(place, third) == passed


def test_what_has_no_headers_cannot_pass_them_on(settings, spark, topics, unique, tmp_path):
    first, second, _ = topics
    place = replace(settings, data=tmp_path)
    flow = copying(f"c{unique}", first, second, lambda rows: rows.drop("_source"), headers=("traceparent",))
    with pytest.raises(FlowError, match="of no one event"):
        run_once(flow, place, spark)
    for wrong in ("traceparent", ("penstock.made-by",), ("",)):
        with pytest.raises(FlowError, match="passes on"):
            copying(f"d{unique}", first, second, headers=wrong)
