"""Projections: functions of a topic's records whose state can be kept and added to."""

from abc import ABC, abstractmethod

from pyspark.sql import DataFrame


class Projection(ABC):
    """What the records of a topic come to, by key.

    What some of them come to is a state: a table with a row for each key. A flow that is a projection can be
    begun with a state that was kept, or computed in one batch, and go on behind it as a stream.
    """

    @property
    @abstractmethod
    def tag(self) -> str:
        """What changes with its code: a state is good for the code that made it."""
        ...

    @abstractmethod
    def __call__(self, records: DataFrame) -> DataFrame:
        """Return what records come to, as a table or as a stream of changes."""
        ...

    @abstractmethod
    def state(self, records: DataFrame) -> DataFrame:
        """Return the state that a table of records comes to, in whatever order they are."""
        ...

    @abstractmethod
    def merged(self, states: DataFrame) -> DataFrame:
        """Merge several states of each key to one, of the same type."""
        ...

    @abstractmethod
    def continued(self, records: DataFrame, states: DataFrame) -> DataFrame:
        """Return what a stream of states, and of the records behind them, come to."""
        ...
