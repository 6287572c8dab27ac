"""What the registry knows, from its records alone."""

import json

import pytest

from penstock.errors import InvalidSchemaError
from penstock.registry.records import Reference, SchemaRecord, from_message, to_message
from penstock.registry.rules import kept, metadata_text, rules_text, run_at_write, satisfies
from penstock.registry.state import State
from penstock.schemas.compatibility import SchemaKind


def state_of(*records):
    state = State()
    for record in records:
        state.apply(record)
        assert record in state.every_version(record.subject)
    return state


def schema(subject, id, *references, text=None, **others):
    text = text or f"text of {subject}"
    return SchemaRecord(subject, 1, id, SchemaKind.JSON, text, text, references, **others)


def tower(levels):
    """Schemas that refer to the one below twice, under two names."""
    below = [Reference(f"{side}{level}", f"s{level - 1}", 1) for level in range(levels) for side in "ab"]
    return [
        schema(f"s{level}", level + 1, *(below[2 * level : 2 * level + 2] if level else ()))
        for level in range(levels)
    ]


def test_references_that_double_on_each_level_are_followed_once():
    state = state_of(*tower(60))
    found = state.texts([Reference("top", "s59", 1)])
    assert len(found) == 2 * 59 + 1
    assert found["a1"] == found["b1"] == "text of s0"


def test_references_are_bounded():
    with pytest.raises(InvalidSchemaError, match="nested deeper than 100"):
        state_of(*tower(120)).texts([Reference("top", "s119", 1)])
    many = [schema(f"s{number}", number + 1) for number in range(1_100)]
    with pytest.raises(InvalidSchemaError, match="it refers to 1001 schemas"):
        state_of(*many).texts([Reference(each.subject, each.subject, 1) for each in many])
    large = [schema(f"s{number}", number + 1, text=f"{number}" + "x" * 2**20) for number in range(17)]
    with pytest.raises(InvalidSchemaError, match="characters"):
        state_of(*large).texts([Reference(each.subject, each.subject, 1) for each in large])


def test_a_reference_to_nothing_is_named():
    with pytest.raises(InvalidSchemaError, match="it refers to 'x': version 2 of 's0' not found"):
        state_of(*tower(1)).texts([Reference("x", "s0", 2)])


def test_a_record_without_rules_is_written_as_before():
    """An instance that knows nothing of rules reads it, and what it wrote is read."""
    plain = schema("s", 1)
    key, value = to_message(plain)
    assert not {"metadata", "rules"} & json.loads(value).keys()
    assert from_message(key, value) == plain


def test_rules_are_part_of_what_an_id_stands_for():
    plain, ruled = schema("a", 1), schema("b", 2, text="text of a", rules='{"domainRules":[]}')
    assert from_message(*to_message(ruled)) == ruled
    state = state_of(plain, ruled)
    assert (state.by_id(1).rules, state.by_id(2).rules) == (None, '{"domainRules":[]}')


@pytest.mark.parametrize(
    "given", [[], "x", 5, {"domainRules": {}}, {"migrationRules": [{}]}, {"domainRules": ["x"]}]
)
def test_rules_of_no_known_form_are_refused(given):
    with pytest.raises(InvalidSchemaError, match="ruleSet"):
        rules_text(given)


def test_metadata_is_an_object():
    assert metadata_text(None) is None
    given = {"tags": {"Order.id": ["PII"]}, "properties": {"owner": "a"}, "sensitive": ["owner"]}
    assert json.loads(metadata_text(given)) == given
    with pytest.raises(InvalidSchemaError, match="metadata"):
        metadata_text(["x"])


def test_what_is_empty_is_as_if_it_were_not_there():
    """Confluent's Python client gives `sensitive: []` to what came without."""
    assert metadata_text({"properties": {"a": "b"}, "sensitive": []}) == metadata_text(
        {"properties": {"a": "b"}}
    )
    assert rules_text({"domainRules": [], "migrationRules": None}) == rules_text({}) == "{}"


def test_what_is_not_given_goes_on_and_an_empty_object_ends_it():
    assert kept(None, None) is None
    assert kept(None, "old") == "old"
    assert kept("new", "old") == "new"
    assert kept("{}", "old") is None


def test_a_schema_is_found_whatever_its_rules_unless_some_are_given():
    plain, ruled = schema("s", 1), schema("s", 2, rules="r")
    assert satisfies(plain, plain)
    assert satisfies(ruled, plain)
    assert satisfies(ruled, schema("s", 0, rules="r"))
    assert not satisfies(plain, schema("s", 0, rules="r"))
    assert satisfies(plain, schema("s", 0, rules="{}"))
    assert not satisfies(ruled, schema("s", 0, rules="{}"))
    assert not satisfies(plain, schema("s", 0, text="other"))


def test_the_rules_that_a_writer_has_to_run():
    rules = {
        "domainRules": [
            {"name": "encrypt", "mode": "WRITEREAD"},
            {"name": "read", "mode": "READ"},
            {"name": "off", "mode": "WRITE", "disabled": True},
        ],
        "migrationRules": [{"name": "upgrade", "mode": "UPGRADE"}],
        "encodingRules": [{"name": "whole", "mode": "WRITEREAD"}],
    }
    assert run_at_write(rules_text(rules)) == ["encrypt", "whole"]
    assert run_at_write(None) == []
