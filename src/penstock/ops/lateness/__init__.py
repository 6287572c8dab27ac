"""How late events come: measured on the log, as flows judge it, and the delay that follows from it."""

from penstock.ops.lateness.advice import Advice, advise
from penstock.ops.lateness.measuring import Partition, measured
from penstock.ops.lateness.plot import drawn, plotted

__all__ = ["Advice", "Partition", "advise", "drawn", "measured", "plotted"]
