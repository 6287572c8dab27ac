"""When the flows in real time have written their checkpoints."""

from datetime import datetime

from penstock.pipeline.progress import ProgressStore
from penstock.settings import Settings

FLOWS = ("suspicious", "taken_over")


def checkpoints(settings: Settings, flow: str, pipeline: str = "fraud") -> list[float]:
    """Return when the batches of a flow ended."""
    path = settings.data / "progress.db"
    if not path.exists():
        return []
    store = ProgressStore(path)
    try:
        batches = store.recent(pipeline, flow)
    finally:
        store.close()
    return [datetime.fromisoformat(batch.at).timestamp() + batch.seconds for batch in batches]


def count_checkpoints(settings: Settings) -> int:
    """Return how many checkpoints there were of all flows in real time."""
    return sum(len(checkpoints(settings, flow)) for flow in FLOWS)
