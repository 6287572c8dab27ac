"""Modes, the front, and what every kind of schema has in common."""

import doctest
import json

import pytest

import penstock.schemas.compatibility as package
from penstock.schemas.compatibility import (
    Direction,
    InvalidSchemaError,
    Mode,
    Problem,
    SchemaKind,
    check,
    parse,
)
from penstock.schemas.compatibility import schema as front
from penstock.schemas.compatibility.mode import problems_in_mode


def grows(reader: int, writer: int) -> list[Problem]:
    """A format where a number reads every number that is not larger."""
    return [] if reader >= writer else [Problem("n", "too-small", f"{reader} < {writer}")]


@pytest.mark.parametrize(
    ("mode", "new", "earlier", "expected"),
    [
        (Mode.NONE, 1, [5, 9], []),
        (Mode.BACKWARD, 5, [9, 4], []),
        (Mode.BACKWARD, 3, [1, 4], [("backward", 1)]),
        (Mode.BACKWARD_TRANSITIVE, 5, [9, 4], [("backward", 0)]),
        (Mode.FORWARD, 5, [1, 9], []),
        (Mode.FORWARD, 5, [9, 4], [("forward", 1)]),
        (Mode.FORWARD_TRANSITIVE, 5, [1, 9], [("forward", 0)]),
        (Mode.FULL, 5, [1, 5], []),
        (Mode.FULL, 5, [5, 4], [("forward", 1)]),
        (Mode.FULL_TRANSITIVE, 5, [9, 1, 5], [("forward", 1), ("backward", 0)]),
        (Mode.FULL_TRANSITIVE, 5, [], []),
    ],
)
def test_a_mode_says_who_must_read_whom(mode, new, earlier, expected):
    found = problems_in_mode(new, earlier, mode, grows)
    assert [(problem.direction, problem.against) for problem in found] == expected


def test_one_break_against_many_versions_is_reported_once_against_the_newest():
    found = problems_in_mode(1, [4, 4, 4], Mode.BACKWARD_TRANSITIVE, grows)
    assert [problem.against for problem in found] == [2]


def test_modes_have_confluents_names():
    assert {mode.value for mode in Mode} == {
        "NONE",
        *(f"{name}{suffix}" for name in ("BACKWARD", "FORWARD", "FULL") for suffix in ("", "_TRANSITIVE")),
    }


def test_a_problem_says_the_field_the_rule_and_who_reads():
    problem = Problem("Order.price", "rule", "what; do this", Direction.FORWARD)
    assert str(problem) == (
        "Order.price: what; do this [rule] (reader: the earlier schema, writer: the new schema)"
    )


def test_the_kind_of_a_subject_does_not_change():
    avro, other = parse(SchemaKind.AVRO, '"string"'), parse(SchemaKind.JSON, '{"type": "string"}')
    assert [problem.rule for problem in check(other, [avro], Mode.BACKWARD)] == ["kind-changed"]
    assert check(other, [avro], Mode.NONE) == []


def test_public_names_are_listed_and_there():
    assert sorted(package.__all__) == package.__all__
    assert all(hasattr(package, name) for name in package.__all__)


def test_the_examples_in_docstrings_run():
    assert doctest.testmod(front).failed == 0


@pytest.mark.parametrize("kind", [SchemaKind.AVRO, SchemaKind.JSON])
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"type": ', "line 1, column 10: not JSON"),
        ('{"type": "string", "type": "long"}', "'type' is given twice"),
        ('{"default": NaN}', "NaN is not JSON"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_text_that_is_not_json_is_refused(kind, text, message):
    with pytest.raises(InvalidSchemaError, match=message):
        parse(kind, text)


def test_errors_carry_the_place():
    with pytest.raises(InvalidSchemaError) as caught:
        parse(
            SchemaKind.AVRO,
            json.dumps({"type": "record", "name": "A", "fields": [{"name": "x", "type": "?"}]}),
        )
    assert caught.value.where == "A.x"
    assert caught.value.hint
