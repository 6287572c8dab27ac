"""What a reader makes of what its cursor brings, in an order that a broker can't be made to have."""

import time

from penstock.errors import LogError
from penstock.gateway import readers
from penstock.gateway.readers import Reader, Survey


class Cursor:
    """A cursor that brings these answers, then nothing, in as long as it may take.

    It has nothing to ask with: whoever asks a client that fetches loses messages.
    """

    def __init__(self, *answers):
        self.answers, self.position = list(answers), {0: 7}

    def go_to(self, offsets):
        self.position = dict(offsets)

    def read(self, _, wait):
        if self.answers:
            return self.answers.pop(0)
        time.sleep(wait)
        return []


class Asked:
    """The cursor of a survey, over a topic to which a partition is added."""

    def __init__(self):
        self.partitions, self.asked, self.away = [0], 0, False

    def look_again(self):
        self.asked += 1
        if self.away:
            raise LogError("no answer")
        return self.partitions

    def beginnings(self):
        return {each: each * 10 for each in self.partitions}


def reading(*answers):
    reader = Reader.__new__(Reader)
    reader._cursor, reader._survey = Cursor(*answers), None
    reader._shown = str.encode
    return reader


def read(*answers, wait):
    return reading(*answers).read(10, wait)


def test_one_partition_that_is_at_its_end_hides_no_other():
    assert read([], ["a", "b"], [], ["c"], wait=5) == [b"a", b"b"]


def test_it_waits_no_longer_than_it_may():
    began = time.monotonic()
    assert read([], [], wait=0.1) == []
    assert read(wait=0) == []
    assert 0.1 <= time.monotonic() - began < 1


def test_partitions_that_are_added_are_found_by_the_survey_once_for_all(monkeypatch):
    cursor, survey = Asked(), Survey.__new__(Survey)
    survey._cursor, survey._partitions, survey._looked_at = cursor, [0], time.monotonic()
    many = [reading(["a"], ["b"], ["c"]) for _ in range(3)]
    for each in many:
        each._survey = survey
    cursor.partitions = [0, 1]
    assert [each.read(1, 0) for each in many] == [[b"a"]] * 3
    assert (cursor.asked, many[0]._cursor.position) == (0, {0: 7})
    monkeypatch.setattr(readers, "_LOOK_EVERY", 60)
    survey._looked_at -= 61
    cursor.away = True
    assert [each.read(1, 0) for each in many] == [[b"b"]] * 3
    survey._looked_at -= 61
    cursor.away = False
    assert [each.read(1, 0) for each in many] == [[b"c"]] * 3
    assert (cursor.asked, [each._cursor.position for each in many]) == (2, [{0: 7, 1: 10}] * 3)
