"""Rankings: the greatest keys of all time, and those that rise above what is usual for them."""

from penstock.process.ranking.rising import rising
from penstock.process.ranking.top import top

__all__ = ["rising", "top"]
