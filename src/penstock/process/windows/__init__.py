"""Windows over time: tumbling, hopping, sliding and session, native or with a policy for late events."""

from penstock.process.time.late import Late
from penstock.process.time.watermark import Watermark
from penstock.process.windows import agg
from penstock.process.windows.windowing import (
    PROCESSING_TIME,
    Windowing,
    hopping,
    session,
    sliding,
    tumbling,
)

__all__ = [
    "PROCESSING_TIME",
    "Late",
    "Watermark",
    "Windowing",
    "agg",
    "hopping",
    "session",
    "sliding",
    "tumbling",
]
