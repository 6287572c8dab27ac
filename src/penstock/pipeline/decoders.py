"""Since where the present decoders read: what an earlier one could decode, they may not."""

import json
from collections.abc import Mapping

from penstock.documents import JsonObject
from penstock.log.ledger import Offsets
from penstock.pipeline.checkpoint import Checkpoint

_WRITTEN = "decoders.json"  # beside the checkpoint


class DecoderStarts:
    """Knows from which position on a flow's topics were read by the decoders of its present code.

    Only that counts as judged by them: a record that an earlier one has decoded was never looked at by these.
    """

    def __init__(self, checkpoint: Checkpoint) -> None:
        self._checkpoint = checkpoint
        self._since: dict[str, dict[int, int] | None] = {}

    def begin(self, decoders: Mapping[str, str]) -> None:
        """Write down, before the flow starts, where decoders begin that are not those of its last run."""
        known = json.loads(self._checkpoint.read(_WRITTEN) or "{}")
        reached = self._checkpoint.position()
        now: JsonObject = {
            topic: {"decoder": decoder, "since": _spelled(reached.get(topic))}
            for topic, decoder in decoders.items()
        }
        now |= {name: each for name, each in known.items() if each["decoder"] == decoders.get(name)}
        if now != known:
            self._checkpoint.write(_WRITTEN, json.dumps(now))
        self._since = {topic: _read(each["since"]) for topic, each in now.items()}

    def since(self) -> Offsets:
        """Return where they began; that is where the flow did, unless its code has changed."""
        first = self._checkpoint.first_offsets()
        return {
            topic: first.get(topic, {}) if since is None else since for topic, since in self._since.items()
        }


def _spelled(offsets: Mapping[int, int] | None) -> dict[str, int] | None:
    return None if offsets is None else {str(number): offset for number, offset in offsets.items()}


def _read(offsets: Mapping[str, int] | None) -> dict[int, int] | None:
    return None if offsets is None else {int(number): offset for number, offset in offsets.items()}
