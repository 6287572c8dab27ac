"""What Spark has written of a checkpoint: the plan and the commit of each batch, and its state's versions."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from penstock.log.ledger import Offsets


@dataclass(frozen=True)
class CheckpointFiles:
    """Reads the files while the flow runs; what it is just writing is not there yet."""

    folder: Path

    @property
    def planned(self) -> int | None:
        """The number of the last batch whose end was written down."""
        return max(_numbers(self.folder / "offsets"), default=None)

    @property
    def committed(self) -> int | None:
        """The number of the last batch that is finished."""
        return max(_numbers(self.folder / "commits"), default=None)

    def end(self, batch: int | None) -> Offsets:
        """Where a batch ends, in each partition of each topic."""
        if batch is None:
            return {}
        found: dict[str, dict[int, int]] = {}
        try:
            lines = (self.folder / "offsets" / str(batch)).read_text().splitlines()[2:]
            for line in lines:
                found |= _offsets(line)
        except (OSError, ValueError):  # it is being written, or was cleared away
            return {}
        return found

    def state_versions(self, steps: int) -> list[int]:
        """The version of its state that each stateful step has saved, in the order in which events pass them.

        Spark counts steps from the end; batch N makes version N + 1.
        """
        return [_version(self.folder / "state" / str(step)) for step in reversed(range(steps))]


def _version(folder: Path) -> int:
    """The last version that all partitions of a step have."""
    partitions = [each for each in _listed(folder) if each.name.isdigit()]
    return min((max(_versions(each), default=0) for each in partitions), default=0)


def _versions(partition: Path) -> Iterator[int]:
    files = [*_listed(partition)]
    files += [inner for each in files if each.is_dir() for inner in _listed(each)]
    for each in files:
        number = each.name.partition(".")[0].partition("_")[0]
        if number.isdigit() and each.suffix in (".changelog", ".zip", ".delta"):
            yield int(number)


def _numbers(folder: Path) -> Iterator[int]:
    return (int(each.name) for each in _listed(folder) if each.name.isdigit())


def _listed(folder: Path) -> list[Path]:
    try:
        return [*folder.iterdir()]
    except OSError:
        return []


def _offsets(line: str) -> dict[str, dict[int, int]]:
    found = {} if line == "-" else json.loads(line)
    return {topic: {int(number): at for number, at in each.items()} for topic, each in found.items()}
