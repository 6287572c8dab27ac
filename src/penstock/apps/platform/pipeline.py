"""The flows of two applications in one process: on two cores there is room for one Spark."""

from penstock.apps.fraud.pipeline import fraud
from penstock.apps.shop.pipeline import shop
from penstock.pipeline import Pipeline

CARDS = ("suspicious", "taken_over", "block", "each_once")
ORDERS = ("sold", "view", "table", "index", "running_low")
platform = Pipeline("platform")
platform.flows |= {name: fraud.flows[name] for name in CARDS}
platform.flows |= {name: shop.flows[name] for name in ORDERS}
