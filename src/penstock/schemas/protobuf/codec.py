"""The codec of Protobuf: every message is read with the schema and the message type that it names."""

from collections.abc import Sequence
from typing import TypeVar

from penstock.events import Event, fields_of
from penstock.schemas.compatibility import SchemaKind
from penstock.schemas.directory import NumberedSchema, SchemaDirectory, TextAfter, WrittenSchema
from penstock.schemas.protobuf.decoder import Decoder
from penstock.schemas.protobuf.encoder import Encoder
from penstock.schemas.protobuf.files import files_of, parsed
from penstock.schemas.protobuf.text import proto_text
from penstock.schemas.registered import Read, RegisteredCodec
from penstock.schemas.upcasting import Upcast, past

E = TypeVar("E", bound=Event)


class ProtobufCodec(RegisteredCodec[E]):
    """Protobuf under Confluent's header and message indexes.

    A message is read as the type of its schema that it names; its fields are the class's by their names.
    """

    kind = SchemaKind.PROTOBUF

    @staticmethod
    def schema_text(cls: type[Event]) -> str:
        return proto_text(cls)

    @classmethod
    def numbered(
        cls,
        event: type[Event],
        subject: str,
        directory: SchemaDirectory,
        upcasts: Sequence[Upcast] = (),
    ) -> NumberedSchema:
        """Return the schema that events of a class are written with, registering it if it is new.

        Its numbers follow those of the versions that are there.
        """
        return directory.numbered(subject, cls.kind, text_after(event, upcasts))

    def prepare(self, schema: NumberedSchema) -> bytes:
        self._encode = Encoder(self._class, files_of(WrittenSchema(self.kind, schema.text, None)))
        return super().prepare(schema)

    def write(self, event: E, header: bytes) -> bytes:
        return header + self._encode(event)

    def is_own(self, schema: WrittenSchema) -> bool:
        return is_schema_of(self._class, schema)

    def reader(self, schema: WrittenSchema, upcasts: tuple[Upcast, ...] | None) -> Read:
        unknown = self._unknown if upcasts is None else "ignore"
        return Decoder(self._class, files_of(schema), upcasts or (), unknown)


def is_schema_of(cls: type[Event], schema: WrittenSchema) -> bool:
    """Whether a class has exactly the fields of a schema: then its text follows from it unchanged."""
    return proto_text(cls, [parsed(schema.text, schema.references)]) == schema.text


def text_after(cls: type[Event], upcasts: Sequence[Upcast]) -> TextAfter:
    """Return what makes the text of a class's schema of those before it.

    If one of them is the class's already, it is that one: a class that was rolled back is no new version.
    """

    def text(earlier: Sequence[WrittenSchema]) -> str:
        newest_first = [each for each in reversed(earlier) if each.kind is SchemaKind.PROTOBUF]
        own = next((each for each in newest_first if is_schema_of(cls, each)), None)
        if own is not None:
            return own.text
        versions = [parsed(each.text, each.references) for each in newest_first]
        former = {field.name: past(field.name, upcasts).names for field in fields_of(cls)}
        return proto_text(cls, versions, former)

    return text
