"""What the checker allows must decode, what it forbids must fail: random Avro schemas and changes."""

import io
import json

import fastavro
from avro_changes import data, pairs
from hypothesis import HealthCheck, assume, given, settings

from penstock.schemas.compatibility import InvalidSchemaError, SchemaKind, parse, read_problems

STEADY = settings(
    max_examples=300,
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
)
# Rules that refuse more than fastavro fails on; each has its reason in the checker or below.
CONSERVATIVE = {
    "field-alias-ambiguous": "libraries choose different fields",
    "bytes-as-string": "only some bytes are text",
}


def parsed(schema):
    try:
        return parse(SchemaKind.AVRO, json.dumps(schema))
    except InvalidSchemaError:
        return None


def encoded(schema, datum):
    target = io.BytesIO()
    fastavro.schemaless_writer(target, fastavro.parse_schema(schema), datum)
    return target.getvalue()


def failures(writer, reader):
    """The data of the writer that fastavro can't read with the reader's schema."""
    written, wanted = fastavro.parse_schema(writer), fastavro.parse_schema(reader)
    for datum in data(writer):
        source = io.BytesIO(encoded(writer, datum))
        try:
            value = fastavro.schemaless_reader(source, written, wanted)
            if not fastavro.validate(value, wanted, raise_errors=False):
                yield datum, value
        except Exception as error:
            yield datum, error


@STEADY
@given(pairs())
def test_what_is_allowed_decodes_and_what_is_forbidden_fails(pair):
    writer, reader = pair
    mine, theirs = parsed(reader), parsed(writer)
    assume(mine and theirs)
    problems = read_problems(mine, theirs)
    failed = list(failures(writer, reader))
    if not problems:
        assert failed == []
    elif not failed:
        assert {problem.rule for problem in problems} <= CONSERVATIVE.keys()


@STEADY
@given(pairs())
def test_every_schema_reads_itself_but_for_text_before_bytes(pair):
    schema = parsed(pair[0])
    assert {problem.rule for problem in read_problems(schema, schema)} <= {"bytes-as-string"}


@STEADY
@given(pairs())
def test_the_canonical_form_is_a_schema_of_its_own_kind(pair):
    schema = parsed(pair[0])
    again = parse(SchemaKind.AVRO, schema.canonical)
    assert again.canonical == schema.canonical
    assert {problem.rule for problem in read_problems(again, schema)} <= {"bytes-as-string"}
