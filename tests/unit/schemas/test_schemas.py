"""The Avro and Spark schemas that come from an event class."""

from dataclasses import dataclass
from datetime import datetime

import fastavro
import pytest
from tests.event_samples import Order

from penstock.errors import EventTypeError
from penstock.events import Event
from penstock.schemas import avro_schema, spark_schema


def test_the_avro_schema_is_valid_and_says_every_type():
    schema = avro_schema(Order)
    fastavro.parse_schema(schema)
    types = {field["name"]: field["type"] for field in schema["fields"]}
    assert schema["name"] == "shop.order"
    assert types["total"] == {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2}
    assert types["at"] == {"type": "long", "logicalType": "timestamp-micros"}
    assert types["channel"] == {"type": "enum", "name": "Channel", "symbols": ["web", "store"]}
    assert types["state"] == "string"
    assert types["coupon"] == ["null", "string"]
    assert types["first"] == "Line"


def test_avro_defaults_are_written_as_avro_writes_them():
    defaults = {
        field["name"]: field["default"] for field in avro_schema(Order)["fields"] if "default" in field
    }
    assert defaults == {
        "coupon": None,
        "discount": None,
        "last": None,
        "reminded": [],
        "currency": "EUR",
        "fee": "2",
    }


def test_the_spark_schema():
    written = spark_schema(Order).simpleString()
    assert "total:decimal(12,2)" in written
    assert "lines:array<struct<product:string,price:decimal(12,2),gift:boolean>>" in written
    assert "rates:map<string,double>" in written


def test_two_nested_classes_of_one_name_are_refused():
    def nested(annotation):
        @dataclass(frozen=True)
        class Item:
            value: annotation

        return Item

    @dataclass(frozen=True)
    class Bag(Event):
        one: nested(str)
        two: nested(int)
        at: datetime

    with pytest.raises(EventTypeError, match="two classes are called Item"):
        avro_schema(Bag)
