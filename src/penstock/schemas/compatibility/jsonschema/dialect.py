"""The drafts of JSON Schema, and which one a document is written in."""

from enum import StrEnum

from jsonschema.exceptions import SchemaError
from jsonschema.protocols import Validator
from jsonschema.validators import Draft7Validator, Draft202012Validator, validator_for

from penstock.documents import Json
from penstock.errors import InvalidSchemaError


class Dialect(StrEnum):
    """What a document's `$schema` says; unless it is declared, readers differ in what they assume."""

    DRAFT_07 = "draft-07"
    DRAFT_2020_12 = "2020-12"
    UNDECLARED = "undeclared"
    OTHER = "other"


_BY_ADDRESS = {
    "http://json-schema.org/draft-07/schema": Dialect.DRAFT_07,
    "https://json-schema.org/draft-07/schema": Dialect.DRAFT_07,
    "https://json-schema.org/draft/2020-12/schema": Dialect.DRAFT_2020_12,
}


def dialect_of(root: Json) -> Dialect:
    """The dialect a document declares."""
    if not isinstance(root, dict) or "$schema" not in root:
        return Dialect.UNDECLARED
    return _BY_ADDRESS.get(str(root["$schema"]).rstrip("#"), Dialect.OTHER)


def checker_of(root: Json, dialect: Dialect) -> type[Validator]:
    """The validator that knows the document's draft; undeclared ones are tried as the newest first."""
    if dialect is Dialect.DRAFT_07:
        return Draft7Validator
    if dialect is Dialect.OTHER:
        return _by_address(root)
    if (
        dialect is Dialect.UNDECLARED
        and _complaint(Draft202012Validator, root)
        and not _complaint(Draft7Validator, root)
    ):
        return Draft7Validator
    return Draft202012Validator


def check(checker: type[Validator], schema: Json, where: str = "") -> None:
    """Refuse what is not a schema in its draft."""
    error = _complaint(checker, schema)
    if error:
        place = ".".join([where or "$", *(str(part) for part in error.absolute_path)])
        hint = "see the keyword's rules in the draft that `$schema` declares"
        raise InvalidSchemaError(error.message, where=place, hint=hint)


def _by_address(root: Json) -> type[Validator]:
    found: type[Validator] | None = validator_for(root, default=None)  # type: ignore[arg-type]
    if found is None:
        hint = "declare draft-07 or 2020-12"
        raise InvalidSchemaError(f"`$schema` is {root['$schema']!r}, an unknown draft", where="$", hint=hint)
    return found


def _complaint(checker: type[Validator], schema: Json) -> SchemaError | None:
    try:
        checker.check_schema(schema)
    except SchemaError as error:
        return error
    return None
