"""One of the bank's processes as a child, which may be killed and started again."""

from penstock.apps.demo.child import Child as Process
from penstock.settings import Settings


class Child(Process):
    """`python -m penstock.apps.bank.worker`."""

    def __init__(self, work: str, store: str, settings: Settings) -> None:
        super().__init__(f"bank.{work}", "penstock.apps.bank.worker", (work, store), settings)
