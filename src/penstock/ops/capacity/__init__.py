"""What a load needs: partitions, cores, memory, disk and network, by costs that were measured."""

from penstock.ops.capacity.costs import COSTS, Cost
from penstock.ops.capacity.plan import Load, Need, needed

__all__ = ["COSTS", "Cost", "Load", "Need", "needed"]
