"""What the checker allows must stay valid: random JSON Schemas, changes and documents."""

import json

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from json_changes import documents, documents_for, pairs, roots
from jsonschema import Draft7Validator, Draft202012Validator

from penstock.schemas.compatibility import InvalidSchemaError, SchemaKind, parse, read_problems

STEADY = settings(
    max_examples=150,
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
)


def parsed(schema):
    try:
        return parse(SchemaKind.JSON, json.dumps(schema))
    except InvalidSchemaError:
        return None


def valid(validator, document):
    try:
        return validator.is_valid(document)
    except RecursionError:
        # A schema that refers to itself without going inside means nothing; no document can judge it.
        return None


@STEADY
@given(pairs(), st.data())
def test_whatever_the_writer_allows_the_reader_allows(pair, data):
    writer, reader = pair
    mine, theirs = parsed(reader), parsed(writer)
    assume(mine and theirs)
    if read_problems(mine, theirs):
        return
    # Nobody says which draft an undeclared schema is of, so both must agree with the checker.
    drafts = (
        [Draft202012Validator]
        if "$schema" in writer or "$schema" in reader
        else [Draft7Validator, Draft202012Validator]
    )
    source = st.one_of(documents_for(writer, writer), documents_for(reader, reader), documents())
    for document in data.draw(st.lists(source, min_size=8, max_size=8)):
        for draft in drafts:
            if valid(draft(writer), document):
                assert valid(draft(reader), document) is not False, document


@STEADY
@given(roots())
def test_every_schema_is_contained_in_itself_under_another_title(root):
    schema = parsed(root)
    assume(schema)
    titled = parsed({**root, "title": "Same"})
    rules = {problem.rule for problem in read_problems(titled, schema)}
    # A schema that refers to its own root is not followed round in circles without going inside.
    assert rules <= ({"not-provable"} if '"$ref": "#"' in json.dumps(root) else set())
