"""Hot keys: one key that has so many of a topic's events that one partition has all the work."""

from collections import Counter
from collections.abc import Iterator

from penstock.ops.doctor.finding import Finding
from penstock.ops.doctor.probes import Probes
from penstock.ops.model import System

ID = "keys.hot"
_ENOUGH, _SHARE, _TIMES = 200, 0.3, 5.0  # records, the share of one key, and how often the fair one that is


def hot_keys(system: System, probes: Probes) -> Iterator[Finding]:
    """Find topics in which one key has a third of the last events, many times what others have."""
    spread = {each.name: len(each.partitions) for each in system.topics}
    for name, sample in probes.samples.items():
        counts = Counter(each.whole_key for each in sample.recent if each.whole_key is not None)
        whole = sum(counts.values())
        if spread.get(name, 0) < 2 or whole < _ENOUGH:
            continue
        (key, _), most = counts.most_common(1)[0]
        if most > _SHARE * whole and most > _TIMES * whole / len(counts):
            yield Finding(
                ID,
                "warning",
                name,
                f"key {key!r} has {most / whole:.0%} of its last {whole:,} events",
                {
                    "key": key,
                    "share": round(most / whole, 2),
                    "events": whole,
                    "keys": len(counts),
                    "partitions": spread[name],
                },
                "all events of a key are in one partition, and one task works on them",
                "take a finer key, or add a part to this one (card and day); sum up in two steps",
            )
