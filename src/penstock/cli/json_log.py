"""What a runner reports, as one JSON object a line: for whoever collects logs."""

import json
import logging
import sys
from datetime import UTC, datetime
from typing import IO


class JsonLog:
    """Writes reports of a pipeline's flows, and what Penstock logs by Python's logging."""

    def __init__(self, pipeline: str, out: IO[str] | None = None) -> None:
        self._pipeline, self._out = pipeline, out or sys.stdout

    def report(self, flow: str | None, what: str) -> None:
        """Write what a flow reports; without a flow it is of the whole pipeline."""
        level, batch = getattr(what, "level", "info"), getattr(what, "batch", None)
        self.write(level, str(what), flow=flow, batch=batch)

    def write(self, level: str, text: str, *, flow: str | None = None, batch: int | None = None) -> None:
        """Write a line; what is not known of it is left out."""
        at = datetime.now(UTC).isoformat(timespec="milliseconds")
        known = {"time": at, "level": level, "pipeline": self._pipeline, "flow": flow, "batch": batch}
        shown = {name: each for name, each in known.items() if each is not None} | {"text": text}
        print(json.dumps(shown, ensure_ascii=False), file=self._out, flush=True)

    def take_over(self) -> None:
        """Let warnings of Penstock's own be lines of the same kind."""
        logger = logging.getLogger("penstock")
        logger.handlers[:] = [_Handler(self)]
        logger.propagate = False


class _Handler(logging.Handler):
    def __init__(self, log: JsonLog) -> None:
        super().__init__()
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        self._log.write(record.levelname.lower(), record.getMessage())
