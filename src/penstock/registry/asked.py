"""A request to the registry, read and checked, and the refusals it may earn."""

from typing import Any

from starlette.requests import Request

from penstock.registry.records import Reference
from penstock.registry.registry import Registry
from penstock.schemas.compatibility import Mode, SchemaKind

INVALID_SCHEMA, INVALID_VERSION, INVALID_MODE = 42201, 42202, 42203


class Refusal(Exception):
    """A request that can't be answered, with the status and the error code of Confluent's registry."""

    def __init__(self, status: int, code: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code


class Asked:
    """A request, with its body read: what handlers look at."""

    def __init__(self, request: Request, registry: Registry, body: dict[str, Any]) -> None:
        self.registry = registry
        self.body = body
        self._request = request

    def path(self, name: str) -> str:
        return str(self._request.path_params[name])

    def flag(self, name: str) -> bool:
        return self._request.query_params.get(name, "").lower() == "true"

    def version(self) -> int | None:
        """The version in the path; None is the newest."""
        text = self.path("version")
        if text in ("latest", "-1"):
            return None
        if not text.isascii() or not text.isdigit() or not 0 < int(text) < 2**31:
            raise Refusal(422, INVALID_VERSION, f"the version {text!r} is not a number from 1, or latest")
        return int(text)

    def schema(self) -> tuple[SchemaKind, str, tuple[Reference, ...]]:
        """The schema in the body."""
        kind, text = self.body.get("schemaType") or "AVRO", self.body.get("schema")
        if kind not in list(SchemaKind) or not isinstance(text, str):
            raise Refusal(422, INVALID_SCHEMA, f"the schema is {text!r} of type {kind!r}")
        try:
            references = tuple(
                Reference(str(each["name"]), str(each["subject"]), int(each["version"]))
                for each in self.body.get("references") or ()
            )
        except (TypeError, KeyError, ValueError) as error:
            raise Refusal(422, INVALID_SCHEMA, f"the references can't be read: {error!r}") from error
        return SchemaKind(kind), text, references

    def mode(self) -> Mode:
        name = self.body.get("compatibility")
        if name not in list(Mode):
            raise Refusal(422, INVALID_MODE, f"the compatibility {name!r} is not one of {', '.join(Mode)}")
        return Mode(name)
