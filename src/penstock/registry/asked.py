"""A request to the registry, read and checked, and the refusals it may earn."""

from dataclasses import replace
from urllib.parse import unquote

from starlette.requests import Request

from penstock.documents import Json, JsonObject
from penstock.registry.records import Reference, SchemaRecord
from penstock.registry.registry import SCHEMA_NOT_FOUND, Registry
from penstock.registry.rules import metadata_text, rules_text
from penstock.schemas.compatibility import Mode, SchemaKind

INVALID_SCHEMA, INVALID_VERSION, INVALID_MODE = 42201, 42202, 42203
_MOST_DIGITS = 10
_MOST_REFERENCES = 1_000
_TAG_CHANGES = ("schemaTagsToAdd", "schemaTagsToRemove", "propagateSchemaTags")
_CONFIGURED = ("defaultMetadata", "overrideMetadata", "defaultRuleSet", "overrideRuleSet")


class Refusal(Exception):
    """A request that can't be answered, with the status and the error code of Confluent's registry."""

    def __init__(self, status: int, code: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code


class Asked:
    """A request, with its body read: what handlers look at."""

    def __init__(self, request: Request, registry: Registry, body: JsonObject) -> None:
        self.registry = registry
        self.body = body
        self._request = request

    def path(self, name: str) -> str:
        """A part of the path, which may hold a slash if that was written as %2F."""
        try:
            return unquote(str(self._request.path_params[name]), errors="strict")
        except UnicodeDecodeError as error:
            raise Refusal(400, 400, f"the path is not UTF-8: {error}") from error

    def flag(self, name: str) -> bool:
        return self._request.query_params.get(name, "").lower() == "true"

    def wanted(self, record: SchemaRecord) -> SchemaRecord:
        """A record as it was asked for: a client that has no compiler wants Protobuf's descriptor."""
        serialized = self._request.query_params.get("format") == "serialized"
        if serialized and record.kind is SchemaKind.PROTOBUF:
            return replace(record, text=record.canonical)
        return record

    def id(self) -> int:
        """The schema's id in the path."""
        text = self.path("id")
        if not text.isascii() or not text.isdigit():
            raise Refusal(404, 404, f"the id {text[:20]!r} is not a number")
        if len(text) > _MOST_DIGITS:
            raise Refusal(404, SCHEMA_NOT_FOUND, f"no schema has the id {text[:_MOST_DIGITS]}…")
        return int(text)

    def version(self) -> int | None:
        """The version in the path; None is the newest."""
        text = self.path("version")
        if text in ("latest", "-1"):
            return None
        if not _is_number(text) or not 0 < int(text) < 2**31:
            raise Refusal(
                422, INVALID_VERSION, f"the version {text[:20]!r} is not a number from 1, or latest"
            )
        return int(text)

    def schema(self) -> tuple[SchemaKind, str, tuple[Reference, ...]]:
        """The schema in the body."""
        kind, text = self.body.get("schemaType") or "AVRO", self.body.get("schema")
        if kind not in list(SchemaKind) or not isinstance(text, str):
            raise Refusal(
                422, INVALID_SCHEMA, f"the schema is {str(text)[:100]!r} of type {str(kind)[:20]!r}"
            )
        given = self.body.get("references") or []
        if not isinstance(given, list) or len(given) > _MOST_REFERENCES:
            raise Refusal(422, INVALID_SCHEMA, f"the references are no list of at most {_MOST_REFERENCES}")
        return SchemaKind(kind), text, tuple(_reference(each) for each in given)

    def metadata(self) -> str | None:
        """The metadata in the body; what would change some of it is refused."""
        self._refuse(_TAG_CHANGES, "give the whole `metadata` instead")
        return metadata_text(self.body.get("metadata"))

    def rules(self) -> str | None:
        """The rules in the body."""
        return rules_text(self.body.get("ruleSet"))

    def mode(self) -> Mode:
        self._refuse(_CONFIGURED, "give `metadata` and `ruleSet` with each schema")
        name = self.body.get("compatibility")
        if name not in list(Mode):
            known = ", ".join(Mode)
            raise Refusal(422, INVALID_MODE, f"the compatibility {str(name)[:20]!r} is not one of {known}")
        return Mode(name)

    def _refuse(self, names: tuple[str, ...], hint: str) -> None:
        for name in names:
            if self.body.get(name):
                raise Refusal(422, INVALID_SCHEMA, f"`{name}` is not supported; {hint}")


def _reference(given: Json) -> Reference:
    match given:
        case {"name": str(name), "subject": str(subject), "version": version} if name:
            return Reference(name, subject, _version(version))
    raise Refusal(
        422, INVALID_SCHEMA, f"a reference is {str(given)[:100]!r}, expected a name, a subject and a version"
    )


def _version(given: Json) -> int:
    whole = isinstance(given, int) and not isinstance(given, bool) and abs(given) < 2**31
    if whole or (isinstance(given, str) and _is_number(given)):
        return int(given)
    raise Refusal(
        422, INVALID_SCHEMA, f"the version of a reference is {str(given)[:20]!r}, expected a number"
    )


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS
