"""What the tests of the doctor share: a look at the own part of a system, and records of it."""

import os
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from penstock.log import Broker, Producer
from penstock.ops.doctor.checks import diagnose
from penstock.ops.doctor.declared import Declared
from penstock.ops.doctor.probes import Probes
from penstock.ops.doctor.probing import examine
from penstock.ops.doctor.topic_sample import TopicSample
from penstock.ops.model import System


class Ward:
    """Looks at the part of a system whose names hold a mark: other tests leave illnesses of their own.

    With PENSTOCK_RECORD set to a folder, what is looked at is written there for the unit tests.
    """

    def __init__(self, settings, mark):
        self.settings, self.mark = settings, mark

    def diagnosis(self, *, wait=0.0, topics=(), pipelines=(), record=None):
        """Return the findings about own subjects as {(id, subject): finding}."""
        system, probes = examine(self.settings, Declared(tuple(topics), tuple(pipelines)), wait)
        if record and "PENSTOCK_RECORD" in os.environ:
            self.write_down(record, system, probes)
        found = diagnose(system, probes)
        return {
            (each.id, each.subject.replace(self.mark, "")): each
            for each in found
            if self.mark in each.subject or self.mark in each.summary
        }

    def write_down(self, name, system, probes):
        kept = {
            "topics": tuple(each for each in system.topics if self.mark in each.name),
            "groups": tuple(each for each in system.groups if self.mark in each.group),
            "flows": tuple(each for each in system.flows if self.mark in each.label),
            "dead_letters": tuple(each for each in system.dead_letters if self.mark in each.source),
        }
        system = replace(system, services=(), replicas=(), captures=(), archives=(), unanswered=(), **kept)
        samples = {name: thinned(each) for name, each in probes.samples.items() if self.mark in name}
        rebalances = tuple(each for each in probes.rebalances if self.mark in each.group)
        slots = tuple(each for each in probes.slots if self.mark in each.name)
        probes = replace(
            probes, earlier=None, samples=samples, rebalances=rebalances, slots=slots, host="here", disks=(),
            broker={}, unanswered=(),
        )  # fmt: skip
        text = msgspec.json.encode({"system": system, "probes": probes}).decode()
        host = os.uname().nodename
        Path(os.environ["PENSTOCK_RECORD"], f"{name}.json").write_text(
            text.replace(self.mark, "").replace(f'"{host}/', '"here/') + "\n"
        )


def thinned(sample, most=200):
    """A sample of fewer records."""
    kept = [record for each in sample.partitions.values() for record in each[-most:]]
    return TopicSample(sample.topic, tuple(kept), sample.unknown, most)


def recorded(path):
    """Read what a ward has written down."""
    found = msgspec.json.decode(path.read_bytes(), type=dict[str, msgspec.Raw])
    return (
        msgspec.json.decode(found["system"], type=System),
        msgspec.json.decode(found["probes"], type=Probes),
    )


def send(settings, topic, events):
    with Producer(settings) as producer:
        producer.send_all(topic, events)


def make(settings, name, partitions=2, **config):
    """Make a topic that nobody declares."""
    named = {key.replace("_", "."): value for key, value in config.items()}
    Broker(settings).ensure(name, partitions, named)
    return name


def now():
    return datetime.now(UTC)
