"""What the gateways serve that tests start as processes of their own, kill and ask to end."""

from dataclasses import dataclass
from datetime import datetime

from penstock.events import Event
from penstock.log import Topic


@dataclass(frozen=True)
class Sale(Event):
    customer: str
    number: int
    at: datetime


sales = Topic("gateway-shop.sales", Sale, key="customer", partitions=3)
