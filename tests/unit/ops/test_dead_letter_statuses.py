"""Dead letters wait behind the position of the last redrive; those before it are only kept."""

from types import SimpleNamespace

import pytest

from penstock.log.redrive import GROUP
from penstock.ops.dead_letter_statuses import LettersQueue, _queues
from penstock.ops.model import PartitionRange, TopicStatus
from penstock.settings import Settings

NAME = "orders.dead-letters"


def topic(*ranges, name=NAME):
    return TopicStatus(name, {number: PartitionRange(*each) for number, each in enumerate(ranges)}, 1, {})


def letter(offset, error="amount is missing", at=1000.0):
    headers = [("penstock.dead.error", error.encode())]
    return SimpleNamespace(
        topic=lambda: NAME,
        partition=lambda: 0,
        offset=lambda: offset,
        timestamp=lambda: (1, int(at * 1000)),
        key=lambda: None,
        value=lambda: b"",
        headers=lambda: headers,
    )


def status(queue, *read, partition=0):
    return queue.status({(NAME, partition): list(read)})


def test_letters_that_were_redriven_do_not_wait():
    done = LettersQueue(topic((0, 2)), "orders", "g", {0: 2})
    assert done.near == {}
    found = done.status({})
    assert (found.waiting, found.kept, found.newest, found.reason) == (0, 2, None, "")


def test_only_letters_behind_the_position_wait_and_say_why():
    queue = LettersQueue(topic((0, 5)), "orders", "g", {0: 3})
    assert queue.near == {(NAME, 0): 3}
    found = status(queue, letter(3, at=1000.0), letter(4, "amount is\nno number", at=2000.0))
    assert (found.waiting, found.kept, found.newest) == (2, 5, 2000.0)
    assert found.reason == "amount is no number"


def test_letters_that_were_deleted_before_the_redrive_do_not_wait():
    assert status(LettersQueue(topic((4, 6)), "orders", "g", {0: 1}), letter(4), letter(5)).waiting == 2
    assert LettersQueue(topic((4, 4)), "orders", "g", {}).status({}).waiting == 0


def test_a_marker_behind_the_position_is_no_letter():
    """The transaction of a redrive ends with one where a letter was still dead."""
    assert status(LettersQueue(topic((0, 4)), "orders", "g", {0: 3})).waiting == 0


def test_of_many_letters_those_that_are_not_read_are_counted():
    queue = LettersQueue(topic((0, 1000)), "orders", "g", {0: 200})
    assert queue.near == {(NAME, 0): 900}
    assert status(queue, *map(letter, range(900, 1000))).waiting == 800
    assert queue.status({}).waiting == 800, "nobody has answered"


def test_each_partition_has_a_position_of_its_own():
    queue = LettersQueue(topic((0, 3), (0, 3), (0, 0)), "orders", "g", {0: 3})
    assert queue.near == {(NAME, 1): 0}
    assert status(queue, letter(0), letter(1), letter(2), partition=1).waiting == 3


@pytest.mark.parametrize(
    ("namespace", "name", "source", "group"),
    [
        ("", "orders.dead-letters", "orders", GROUP + "orders"),
        (
            "",
            "_penstock_dead-letters.shop.partner",
            "shop.partner",
            "penstock.redrive._penstock_dead-letters.shop.partner",
        ),
        (
            "team",
            "_penstock.team.dead-letters.shop.partner",
            "shop.partner",
            "penstock.redrive._penstock.team.dead-letters.shop.partner",
        ),
    ],
)
def test_empty_queues_are_there_too_with_the_group_of_their_redrives(namespace, name, source, group):
    (found,) = _queues(
        Settings(namespace=namespace), [topic((0, 0), name=name), topic((0, 9), name="orders")]
    )
    assert (found.source, found.group) == (source, group)
    assert found.status({}).waiting == 0
