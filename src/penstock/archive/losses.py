"""Losses: records that Kafka deleted before they were archived, accepted so that archiving goes on."""

from dataclasses import replace

from penstock.archive.adding import declare
from penstock.log import Broker
from penstock.log.archive.archive import Archive
from penstock.log.archive.history import History
from penstock.log.archive.segment import gaps
from penstock.log.ranges import Range
from penstock.settings import Settings


def accept_losses(archive: Archive, settings: Settings) -> Archive:
    """Write down what is lost of a topic: neither archived, nor in Kafka."""
    history, lost = History.open(archive, settings), dict(archive.lost)
    for partition, (first, _) in Broker(settings).offsets(archive.topic).items():
        found = _lost(archive, history, partition, first)
        if found:
            lost[partition] = tuple(sorted([*archive.lost.get(partition, ()), *found]))
    accepted = replace(archive, lost=lost)
    if accepted != archive:
        declare(accepted, settings)
    return accepted


def _lost(archive: Archive, history: History, partition: int, first: int) -> list[Range]:
    known = [*history.segments(partition), *archive.accepted(partition)]
    return gaps(known, archive.begin(partition), first)
