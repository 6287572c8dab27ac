"""What runners have published is read flow by flow: what can't be read hides no other."""

import pytest

from penstock.errors import TopicError
from penstock.pipeline import flow_status
from penstock.pipeline.flow_status import FlowStatus, flow_statuses
from penstock.settings import Settings


def word(label):
    return FlowStatus(label, "running", 1.0, 0.0, "here/1").to_json()


@pytest.fixture
def published(monkeypatch):
    """The last words in status topics; an error is raised."""
    topics = {}

    def last_words(_, topic):
        if isinstance(topics[topic], Exception):
            raise topics[topic]
        return topics[topic]

    monkeypatch.setattr(flow_status, "_last_words", last_words)
    return topics


def test_a_record_that_cannot_be_decoded_hides_no_other_flow(published):
    published["_penstock_status.shop"] = {
        b"shop.bill": word("shop.bill"),
        b"shop.odd": b"\x00 no JSON",
        b"shop.half": b'{"label": "shop.half", "state": 7}',
        b"shop.gone": None,
    }
    published["_penstock_status.bank"] = {b"bank.book": word("bank.book")}
    missing = []
    found = flow_statuses(Settings(), published, missing)
    assert [each.label for each in found] == ["bank.book", "shop.bill"]
    assert [each.split(":")[0] for each in missing] == [
        "status of shop.odd in _penstock_status.shop",
        "status of shop.half in _penstock_status.shop",
    ]


def test_a_topic_that_cannot_be_read_hides_no_other(published):
    published["_penstock_status.shop"] = TopicError("the topic does not exist")
    published["_penstock_status.bank"] = {b"bank.book": word("bank.book")}
    published["orders"] = TopicError("it is not asked for")
    missing = []
    assert [each.label for each in flow_statuses(Settings(), published, missing)] == ["bank.book"]
    assert missing == ["flows of _penstock_status.shop: the topic does not exist"]
