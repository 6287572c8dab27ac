"""Positions of flows as they are published: with the time that their batches take from each other."""

from confluent_kafka import TopicPartition

from penstock.log.commit_interval import interval_of, with_interval
from penstock.pipeline.positions import Positions


class Groups:
    def __init__(self):
        self.placed = []

    def place(self, group, offsets, every):
        self.placed.append((group, offsets, every))


def test_a_position_is_published_with_its_interval():
    groups = Groups()
    positions = Positions(groups)
    positions.reached("penstock.shop.bill", {"orders": {0: 7}}, 900.0)
    positions.close()
    assert groups.placed == [("penstock.shop.bill", {"orders": {0: 7}}, 900.0)]


def test_an_interval_is_read_back_and_others_texts_say_none():
    place = TopicPartition("orders", 0, 17)
    assert [interval_of(with_interval(place, each)) for each in (None, 0.001, 900, 86_400.5)] == [
        None, 0.001, 900.0, 86_400.5]  # fmt: skip
    assert with_interval(place, 900).offset == 17
    for text in ("", "penstock.topic-id=x", "penstock.every=oftens"):
        assert interval_of(TopicPartition("orders", 0, 17, text)) is None
