"""Kafka's own command line tools, run as programs of their own beside the broker's jars."""

import os
import subprocess
from dataclasses import dataclass

from penstock.local import jars, java

_TOOLS = jars.Jar(
    group="org.apache.kafka",
    artifact="kafka-tools",
    version="4.3.1",
    sha256="62f3c5dd7aa3442d4c5bc6a95f86e2502178ea09de8e27f74d9563bf955e253c",
)
_GROUPS = "org.apache.kafka.tools.consumer.group"
_MISSING = "-"


@dataclass(frozen=True)
class ToolLag:
    """What a tool says of a group in a partition; a figure that it does not know is None."""

    position: int | None
    end: int | None
    lag: int | None


def consumer_group(settings, group):
    """The lags of a consumer group by topic and partition: `kafka-consumer-groups --describe`."""
    rows = _described("ConsumerGroupCommand", settings, group)
    return {
        (row["TOPIC"], int(row["PARTITION"])): ToolLag(
            _number(row["CURRENT-OFFSET"]), _number(row["LOG-END-OFFSET"]), _number(row["LAG"])
        )
        for row in rows
    }


def share_group(settings, group):
    """The lags of a share group by topic and partition: `kafka-share-groups --describe`."""
    rows = _described("ShareGroupCommand", settings, group)
    return {
        (row["TOPIC"], int(row["PARTITION"])): ToolLag(
            _number(row["START-OFFSET"]), None, _number(row.get("LAG", _MISSING))
        )
        for row in rows
    }


def _described(tool, settings, group):
    address = settings.kafka["bootstrap.servers"]
    done = subprocess.run(
        [str(java.find().program), "-Xmx256m", "-cp", _class_path(), f"{_GROUPS}.{tool}",
         "--bootstrap-server", address, "--describe", "--group", group],
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    return _table(done.stdout)


def _table(text):
    """The rows under the line of names; a consumer that has no member is written as '-'."""
    lines = [line.split() for line in text.splitlines() if line.strip()]
    names = next(number for number, line in enumerate(lines) if line[0] == "GROUP")
    return [dict(zip(lines[names], line, strict=False)) for line in lines[names + 1 :]]


def _class_path():
    tools = jars.ensure((_TOOLS,)) / _TOOLS.file
    return os.pathsep.join((str(tools), jars.class_path("kafka")))


def _number(text):
    return None if text == _MISSING else int(text)
