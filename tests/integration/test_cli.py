"""The command line by hand: what it prints, and the exit codes."""

import io
import json
import os
import subprocess
import sys
import time

import pytest

from penstock.cli import output
from penstock.cli.main import run

SHOP = """
from dataclasses import dataclass
from datetime import datetime
from penstock.events import Event
from penstock.log import Table, Topic

@dataclass(frozen=True)
class Order(Event):
    customer: str
    at: datetime

orders = Topic("NAME.orders", Order, key="customer", partitions=PARTITIONS, format="avro")
customers = Table("NAME.customers", Order, key="customer")
"""


@pytest.fixture
def shop(tmp_path, unique):
    def write(partitions):
        text = SHOP.replace("NAME", unique).replace("PARTITIONS", str(partitions))
        (tmp_path / "shop.py").write_text(text)

    write(2)
    (tmp_path / "penstock.toml").write_text('modules = ["shop.py"]')
    return write


@pytest.fixture
def penstock(settings, tmp_path, monkeypatch, capsys):
    """The command line, run in this process: its words, its output and its exit code are the real ones."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PENSTOCK_KAFKA_BOOTSTRAP_SERVERS", settings.kafka["bootstrap.servers"])
    monkeypatch.setattr(output.console, "width", 200)
    monkeypatch.setattr(sys, "stdin", io.StringIO())

    def invoke(*words, code=0):
        monkeypatch.setattr(sys, "argv", ["penstock", *words])
        with pytest.raises(SystemExit) as ended:
            run()
        said = capsys.readouterr()
        assert ended.value.code == code, said.err
        return said.out + said.err

    return invoke


def test_topics_from_plan_to_delete(penstock, shop, unique):
    name = f"{unique}.orders"
    planned = json.loads(penstock("topics", "plan", "--json"))
    assert {change["topic"]: change["action"] for change in planned} == {
        f"{unique}.customers": "create",
        name: "create",
    }
    assert "create" in penstock("topics", "apply")
    assert name in [state["name"] for state in json.loads(penstock("topics", "list", "--json"))]
    assert name in penstock("topics", "list")
    described = json.loads(penstock("topics", "describe", name, "--json"))
    assert (described["partitions"], described["offsets"]["0"]) == (2, [0, 0])
    assert "2 partitions" in penstock("topics", "describe", name)
    shop(1)
    assert "can't shrink" in penstock("topics", "plan", code=78)
    refused = penstock("topics", "apply", code=78)
    assert "has 2 partitions, 1 declared" in refused
    assert "→" in refused
    penstock("topics", "delete", name, code=1)
    penstock("topics", "delete", name, "--yes")
    assert "does not exist" in penstock("topics", "describe", name, code=78)


def test_tail_decodes_groups_report_and_dead_letters_come_back(penstock, shop, settings, unique, tmp_path):
    from datetime import UTC, datetime

    from penstock.cli.modules import declared_topics
    from penstock.log import Consumer, Producer
    from penstock.registry import Registry

    penstock("topics", "apply")
    orders = declared_topics((str(tmp_path / "shop.py"),))[1]
    with Registry(settings) as registry, Producer(settings, schemas=registry) as producer:
        for number in range(5):
            producer.send(orders, orders.event(customer=f"c{number}", at=datetime(2026, 1, 1, tzinfo=UTC)))
        producer.send_bytes(orders.name, b"c0", b"broken")
    lines = [
        json.loads(line)
        for line in penstock("topics", "tail", orders.name, "--from-beginning", "-n", "6").splitlines()
    ]
    assert sorted(line["event"]["customer"] for line in lines if "event" in line) == [
        f"c{n}" for n in range(5)
    ]
    assert [line["value"] for line in lines if "error" in line] == ["broken"]
    (tmp_path / "penstock.toml").unlink()  # nobody says what the topic holds: its messages name their schema
    shown = penstock("topics", "tail", orders.name, "--from-beginning", "-n", "6").splitlines()
    values = [json.loads(line)["value"] for line in shown]
    assert sorted(each["customer"] for each in values if each != "broken") == [f"c{n}" for n in range(5)]
    (tmp_path / "penstock.toml").write_text('modules = ["shop.py"]')

    with (
        Registry(settings) as registry,
        Consumer(orders, settings, group=unique, schemas=registry) as consumer,
    ):
        assert len(list(consumer.records(idle="1 second"))) == 5
    assert unique in penstock("groups", "list")
    assert json.loads(penstock("groups", "describe", unique, "--json"))["state"] == "empty"
    assert sum(row["events"] for row in json.loads(penstock("groups", "lag", unique, "--json"))) == 0
    assert "nothing was changed" in penstock("groups", "reset", unique, orders.name, "--to", "beginning")
    penstock("groups", "reset", unique, orders.name, "--to", "beginning", "--yes")
    assert sum(row["events"] for row in json.loads(penstock("groups", "lag", unique, "--json"))) == 6
    penstock("groups", "reset", unique, orders.name, "--to", "sometime", code=78)
    assert "no partition 9" in penstock("groups", "reset", unique, orders.name, "--to", "9=1", code=78)
    assert "not 999999" in penstock("groups", "reset", unique, orders.name, "--to", "0=999999", code=78)
    assert json.loads(penstock("topics", "redrive", orders.name, "--json")) == {
        "sent": 0,
        "still_dead": 1,
        "repeated": 0,
    }


def test_tail_follows_live(settings, shop, penstock, unique, tmp_path):
    from penstock.log import Producer

    penstock("topics", "apply")
    follower = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "from penstock.cli.main import run; run()",
            "topics",
            "tail",
            f"{unique}.customers",
            "-n",
            "1",
        ],
        env=os.environ | {"PENSTOCK_KAFKA_BOOTSTRAP_SERVERS": settings.kafka["bootstrap.servers"]},
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        text=True,
    )
    for _ in range(60):  # until the follower stands at the end and sees the next one
        with Producer(settings) as producer:
            producer.send_bytes(f"{unique}.customers", b"c1", None)
        if follower.poll() is not None:
            break
        time.sleep(0.25)
    assert json.loads(follower.communicate(timeout=10)[0].splitlines()[0])["deleted"] is True


@pytest.mark.parametrize(
    "words",
    [
        ("topics",),
        ("groups",),
        ("topics", "tail"),
        ("groups", "reset"),
        ("up",),
        ("demo",),
        ("demo", "fraud"),
    ],
)
def test_help_has_an_example(penstock, words):
    text = penstock(*words, "--help")
    assert "Example" in text or "Commands" in text


def test_no_modules_is_reported(penstock):
    assert "penstock.toml" in penstock("topics", "plan", code=78)
    assert "no file" in penstock("topics", "plan", "nothing.py", code=78)


@pytest.mark.parametrize(("text", "line"), [("x = (", 1), ("\nimport nothing_of_this_name", 2), ("1 / 0", 1)])
def test_a_module_that_is_broken_is_reported_with_its_place(penstock, tmp_path, text, line):
    (tmp_path / "broken.py").write_text(text)
    shown = penstock("topics", "plan", "broken.py", code=78)
    assert "can't be imported" in shown
    assert f"broken.py:{line}" in shown


def test_what_does_not_exist_is_an_error(penstock, unique):
    assert "does not exist" in penstock("groups", "lag", unique, code=78)
    assert "does not exist" in penstock("topics", "redrive", unique, code=78)


def test_the_version_is_shown(penstock):
    assert penstock("--version").startswith("penstock ")


def test_schemas_from_register_to_diff(penstock, tmp_path, unique):
    def write(name, *fields):
        schema = {"type": "record", "name": "Order", "fields": list(fields)}
        (tmp_path / name).write_text(json.dumps(schema))

    sku = {"name": "sku", "type": "string"}
    write("one.avsc", sku)
    write("two.avsc", sku, {"name": "price", "type": "double", "default": 0})
    write("three.avsc", sku, {"name": "size", "type": "double"})
    assert json.loads(penstock("schemas", "register", unique, "one.avsc", "--json"))["version"] == 1
    assert "compatible" in penstock("schemas", "check", unique, "two.avsc")
    assert "version 2" in penstock("schemas", "register", unique, "two.avsc")
    refused = penstock("schemas", "check", unique, "three.avsc", code=78)
    assert "Order.size" in refused
    assert "reader-field-missing-default" in refused
    assert "Order.size" in penstock("schemas", "register", unique, "three.avsc", code=78)
    assert '+      "name": "price"' in penstock("schemas", "diff", unique, "1", "2")
    assert '"sku"' in penstock("schemas", "show", unique, "1")
    assert unique in [row["subject"] for row in json.loads(penstock("schemas", "list", "--json"))]
    penstock("schemas", "register", f"{unique}[/b]", "one.avsc")
    assert f"{unique}[/b] version 1" in penstock("schemas", "show", f"{unique}[/b]")
    assert f"{unique}[/b]" in penstock("schemas", "list")
    assert "not found" in penstock("schemas", "show", "nobody", code=78)
    assert "not a schema's file" in penstock("schemas", "check", unique, "one.txt", code=78)
