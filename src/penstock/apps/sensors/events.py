"""What the sensors application reads and writes."""

from dataclasses import dataclass
from datetime import datetime

from penstock.events import Event
from penstock.log import Topic

GATEWAYS = ("north", "south", "east")


@dataclass(frozen=True)
class Reading(Event):
    """The temperature of a machine, sent through the gateway of its hall."""

    machine: str
    gateway: str
    temperature: float
    at: datetime


@dataclass(frozen=True)
class Alert(Event):
    """A machine is `hot`, or `silent`; `reading` is the one that says so, or the last one that came."""

    machine: str
    kind: str
    reading: str
    at: datetime


readings = Topic("sensors.readings", Reading, key="gateway", partitions=2)
alerts = Topic("sensors.alerts", Alert, key="machine")
TOPICS = (readings, alerts)
