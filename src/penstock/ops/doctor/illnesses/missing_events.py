"""Events that go missing after a schema change: readers can't decode them, or look for what is gone."""

from collections.abc import Iterator

from penstock.ops.doctor.finding import Finding
from penstock.ops.doctor.probes import Probes
from penstock.ops.doctor.topic_sample import SampledRecord, TopicSample
from penstock.ops.model import System

ID = "schema.missing-events"
_ENOUGH = 20  # records on each side of a change


def missing_events(system: System, probes: Probes) -> Iterator[Finding]:
    """Find topics whose newest records name an unknown schema, fail to decode, or lack an old field."""
    tables = {each.name for each in system.topics if "compact" in each.config.get("cleanup.policy", "")}
    for name, sample in probes.samples.items():
        if sample.unknown:
            yield _unknown(sample)
        elif _undecodable(sample):
            yield _undecoded(sample, _undecodable(sample))
        elif name not in tables:
            yield from _lost_fields(sample)


def _unknown(sample: TopicSample) -> Finding:
    found = [each for each in sample.records if each.schema in sample.unknown]
    return Finding(
        ID,
        "error",
        sample.topic,
        f"{len(found)} of its last {len(sample.records):,} records name a schema that the registry lacks",
        {
            "records": len(found),
            "sampled": len(sample.records),
            "schemas": " ".join(map(str, sample.unknown)),
            "first": found[0].place if found else "",
        },
        "its producer registers schemas elsewhere, or the registry's topic was lost",
        "point the producer to this registry, or register the schemas here under the same ids; dead letters "
        "are then redriven by `penstock topics redrive`",
    )


def _undecodable(sample: TopicSample) -> list[SampledRecord]:
    """The records that the declared class can't decode, if older ones can be: then something changed."""
    found = [each for each in sample.records if each.error]
    if not found:
        return []
    good = [each for each in sample.records if not each.error]
    return found if good and len(found) > 0.02 * len(sample.records) else []


def _undecoded(sample: TopicSample, found: list[SampledRecord]) -> Finding:
    newest = max(each.at for each in sample.records if not each.error)
    since = min(each.at for each in found)
    return Finding(
        ID,
        "error",
        sample.topic,
        f"{len(found)} of its last {len(sample.records):,} records can't be decoded by the class declared",
        {
            "records": len(found),
            "sampled": len(sample.records),
            "first": found[0].place,
            "error": found[0].error[:200],
            "all_since": "yes" if since >= newest else "no",
        },
        "its producer has another version of the event than the readers",
        "give the class a default for what is new, or an upcast from the older version; then redrive: "
        f"`penstock topics redrive {sample.topic}`",
    )


def _lost_fields(sample: TopicSample) -> Iterator[Finding]:
    """A field that all records had and the newest lack: a filter on it finds nothing any more."""
    records = sorted((each for each in sample.records if each.fields), key=lambda each: each.at)
    for name in sorted({field for each in records for field in each.fields}):
        having = [number for number, each in enumerate(records) if name in each.fields]
        kept = having[-1] + 1
        steady = len(having) >= 0.98 * kept
        if steady and kept >= _ENOUGH and len(records) - kept >= _ENOUGH:
            yield _lost(sample, name, records, kept)
            return


def _lost(sample: TopicSample, name: str, records: list[SampledRecord], kept: int) -> Finding:
    before = {field for each in records[:kept] for field in each.fields}
    new = {field for each in records[kept:] for field in each.fields} - before
    return Finding(
        ID,
        "warning",
        sample.topic,
        f"its field {name!r} is gone: {kept:,} of its last records have it, the {len(records) - kept:,} "
        "newest don't",
        {
            "field": name,
            "with": kept,
            "without": len(records) - kept,
            "first": records[kept].place,
            "new_fields": " ".join(sorted(new)) or "none",
        },
        "its producer has left the field out or renamed it; readers get its default, and a filter on it "
        "drops the event",
        'bring it back or rename it by an upcast; a registry (format="avro") would have refused the change',
    )
