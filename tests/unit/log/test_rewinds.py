"""What counts of collected messages when partitions go and come, and where reading goes back to."""

from dataclasses import dataclass

from confluent_kafka import TopicPartition

from penstock.log.rewinds import Rewinds


@dataclass(frozen=True)
class Message:
    number: int
    at: int

    def partition(self):
        return self.number

    def offset(self):
        return self.at


MESSAGES = [Message(0, 5), Message(1, 7), Message(0, 6), Message(1, 8)]


def test_without_a_rebalance_all_messages_count():
    assert Rewinds().current(MESSAGES) == MESSAGES


def test_a_revoked_partition_takes_its_messages_with_it():
    rewinds = Rewinds()
    rewinds.revoke([1])
    assert rewinds.current(MESSAGES) == [Message(0, 5), Message(0, 6)]
    rewinds.begin()
    assert rewinds.current(MESSAGES) == MESSAGES, "it counts for one collection"


def test_a_partition_that_comes_back_at_once_is_read_from_its_place():
    rewinds = Rewinds()
    rewinds.revoke([1])
    rewinds.assign([TopicPartition("t", 1, 3), TopicPartition("t", 2, 9)])
    assert rewinds.back == {1: 3}
    assert rewinds.current(MESSAGES) == [Message(0, 5), Message(0, 6)]


def test_what_was_not_finished_is_read_again_from_its_first_message():
    rewinds = Rewinds()
    rewinds.read_again(MESSAGES[1:])
    assert rewinds.back == {0: 6, 1: 7}
    assert rewinds.current(MESSAGES) == [], "until reading went back, nothing is in its turn"


def test_what_is_revoked_is_not_read_again():
    rewinds = Rewinds()
    rewinds.read_again(MESSAGES)
    rewinds.revoke([0])
    rewinds.read_again(MESSAGES)
    assert rewinds.back == {1: 7}


def test_the_users_own_place_wins():
    rewinds = Rewinds()
    rewinds.seek(0)
    rewinds.read_again(MESSAGES)
    assert rewinds.back == {1: 7}
