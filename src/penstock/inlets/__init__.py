"""Direct messages into the log: UDP, TCP lines and ZeroMQ as typed events of a topic."""

from penstock.inlets.counts import Counts
from penstock.inlets.inlet import Inlet
from penstock.inlets.messages import Messages
from penstock.inlets.redrive import redrive
from penstock.inlets.tcp import Tcp
from penstock.inlets.udp import Udp
from penstock.inlets.zeromq import ZeroMq

__all__ = ["Counts", "Inlet", "Messages", "Tcp", "Udp", "ZeroMq", "redrive"]
