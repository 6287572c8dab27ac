"""Messages as Debezium's PostgreSQL connector writes them: bare JSON, JSON with its schema, and Avro."""

import base64
import io
import json
import struct
from datetime import UTC, datetime

import fastavro

COMMITTED = datetime(2026, 3, 1, 12, 0, 0, 123456, tzinfo=UTC)
_SOURCE = {
    "version": "3.0.5.Final",
    "connector": "postgresql",
    "name": "shop",
    "ts_ms": int(COMMITTED.timestamp() * 1000),
    "snapshot": "false",
    "db": "shop",
    "sequence": '["24023119","24023128"]',
    "ts_us": int(COMMITTED.timestamp()) * 1_000_000 + COMMITTED.microsecond,
    "ts_ns": (int(COMMITTED.timestamp()) * 1_000_000 + COMMITTED.microsecond) * 1000,
    "schema": "public",
    "table": "orders",
    "txId": 571,
    "lsn": 24023128,
    "xmin": None,
}


def envelope(op, after=None, before=None, **source):
    """Return the value of a change, not yet written down."""
    return {
        "before": before,
        "after": after,
        "source": _SOURCE | source,
        "transaction": None,
        "op": op,
        "ts_ms": _SOURCE["ts_ms"] + 20,
        "ts_us": _SOURCE["ts_us"] + 20_000,
        "ts_ns": _SOURCE["ts_ns"] + 20_000_000,
    }


def bare(value):
    """JSON with schemas.enable=false."""
    return json.dumps(value).encode()


def wrapped(value, columns):
    """JSON with schemas.enable=true; `columns` are the fields of the row's schema."""
    row = {"type": "struct", "optional": True, "name": "shop.public.orders.Value", "fields": columns}
    fields = [
        row | {"field": "before"},
        row | {"field": "after"},
        {"type": "struct", "fields": [], "optional": False, "field": "source"},
        {"type": "string", "optional": False, "field": "op"},
        {"type": "int64", "optional": True, "field": "ts_ms"},
    ]
    schema = {"type": "struct", "fields": fields, "optional": False, "name": "shop.public.orders.Envelope"}
    return json.dumps({"schema": schema, "payload": value}).encode()


def column(field, type, name=None, **parameters):
    """One column in the schema of wrapped JSON."""
    made = {"type": type, "optional": True, "field": field}
    if name:
        made |= {"name": name, "version": 1}
    return made | ({"parameters": parameters} if parameters else {})


def unscaled(number):
    """A decimal's bytes as decimal.handling.mode=precise writes them in JSON."""
    return base64.b64encode(number.to_bytes((number.bit_length() + 8) // 8, "big", signed=True)).decode()


def avro_envelope(columns):
    """Return the Avro schema of a table's changes, as Confluent's converter registers it."""
    space = "shop.public.orders"
    row = {"type": "record", "name": "Value", "fields": columns, "connect.name": f"{space}.Value"}
    source = [
        {"name": "version", "type": "string"},
        {"name": "ts_ms", "type": "long"},
        {
            "name": "snapshot",
            "type": [
                {
                    "type": "string",
                    "connect.version": 1,
                    "connect.parameters": {"allowed": "true,first,last,false,incremental"},
                    "connect.default": "false",
                    "connect.name": "io.debezium.data.Enum",
                },
                "null",
            ],
            "default": "false",
        },
        *(
            {"name": name, "type": ["null", "long"], "default": None}
            for name in ("ts_us", "txId", "lsn", "xmin")
        ),
    ]
    origin = {"type": "record", "name": "Source", "namespace": "io.debezium.connector.postgresql"}
    return {
        "type": "record",
        "name": "Envelope",
        "namespace": space,
        "connect.name": f"{space}.Envelope",
        "fields": [
            {"name": "before", "type": ["null", row], "default": None},
            {"name": "after", "type": ["null", "Value"], "default": None},
            {"name": "source", "type": origin | {"fields": source}},
            {"name": "op", "type": "string"},
            {"name": "ts_ms", "type": ["null", "long"], "default": None},
        ],
    }


def avro_key(type="long", name="id"):
    """Return the Avro schema of Kafka's keys."""
    fields = [{"name": name, "type": type}]
    return {"type": "record", "name": "Key", "namespace": "shop.public.orders", "fields": fields}


def avro(id, schema, value):
    """A message under Confluent's header."""
    target = io.BytesIO()
    target.write(struct.pack(">bI", 0, id))
    fastavro.schemaless_writer(target, fastavro.parse_schema(schema), value)
    return target.getvalue()
