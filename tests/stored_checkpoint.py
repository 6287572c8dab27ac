"""A checkpoint in memory, with batches that were planned and finished."""

import json

from penstock.log.ledger import Offsets
from penstock.pipeline.checkpoint import Checkpoint


class Stored(Checkpoint):
    """Its files are a dict."""

    def __init__(self, files: dict[str, str]) -> None:
        self.files, self.path = files, "memory"

    def read(self, name: str) -> str | None:
        return self.files.get(name)

    def write(self, name: str, text: str) -> None:
        self.files[name] = text

    def remove(self, name: str) -> None:
        self.files.pop(name, None)

    def delete(self) -> bool:
        found = bool(self.files)
        self.files.clear()
        return found

    def _numbers(self, folder: str) -> list[int]:
        return sorted({int(name.split("/")[1]) for name in self.files if name.startswith(f"{folder}/")})


def planned(watermark: int, *sources: object) -> str:
    """The plan of a batch as Spark writes it."""
    metadata = {"batchWatermarkMs": watermark, "batchTimestampMs": 1, "conf": {"a": "b"}}
    return "\n".join(["v1", json.dumps(metadata), *(json.dumps(each) for each in sources)])


def stored(ends: dict[int, Offsets], committed: int) -> Stored:
    """A checkpoint with these batches, so many of them finished; its watermark is 7 ms."""
    files = {f"offsets/{number}": planned(7, end, {"clock": {0: number}}) for number, end in ends.items()}
    files |= {f"commits/{number}": f'v2\n{{"nextBatchWatermarkMs":{number}}}' for number in range(committed)}
    return Stored(files | {"metadata": '{"id":"own"}'})
