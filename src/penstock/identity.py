"""A flow's identity: the one name that it goes by, and every name that is made of it."""

import re
from dataclasses import dataclass
from typing import Self

LABEL = r"(?:[a-z0-9][a-z0-9_-]{0,39}:)?[A-Za-z0-9._-]{1,250}"  # as a regular expression
VERSION = r"[A-Za-z0-9._-]{1,40}"
NAMESPACE = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")
CAPTURES = "penstock.capture"
GATEWAY = "penstock.gateway"
_GENERATION = re.compile(r"([^.]+\.[^.]+)\.g\d+")
_CLOCK = re.compile(r"_penstock(_|\.[a-z0-9_-]+\.)clock\.")


@dataclass(frozen=True)
class Identity:
    """A flow by its label, `pipeline.flow` or `namespace:pipeline.flow`; what is made of it stays as it is.

    >>> Identity("shop.large").group, Identity("team:shop.large").group
    ('penstock.shop.large', 'penstock:team.shop.large')
    >>> Identity("shop.large").ledger, Identity("team:shop.large").ledger
    ('_penstock_ledger.shop.large', '_penstock.team.ledger.shop.large')

    A flow's version is in none of these names: a new version goes on with what the one before has left. Its
    `generation` is: a flow that is rebuilt has a checkpoint and a ledger of its own beside those at work.

    >>> Identity("shop.large", 2).sink, Identity("shop.large", 2).folder("flows")
    ('shop.large.g2', 'flows/shop/large/g2')
    """

    label: str
    generation: int = 0

    @classmethod
    def of(cls, namespace: str, pipeline: str, flow: str) -> Self:
        return cls(f"{namespace}:{pipeline}.{flow}" if namespace else f"{pipeline}.{flow}")

    @classmethod
    def of_dead_letters(cls, namespace: str, pipeline: str) -> Self:
        """Return who makes the dead letters of a pipeline."""
        return cls.of(namespace, pipeline, "dead-letters")

    @classmethod
    def of_capture(cls, namespace: str, name: str) -> Self:
        """Return who writes the changes of a capture; no pipeline has a dot in its name."""
        return cls.of(namespace, CAPTURES, name)

    @classmethod
    def of_keys(cls, namespace: str) -> Self:
        """Return who remembers the idempotency keys of gateways."""
        return cls.of(namespace, GATEWAY, "keys")

    @property
    def namespace(self) -> str:
        return self.label.rpartition(":")[0]

    @property
    def pipeline(self) -> str:
        return self._path.rpartition(".")[0]

    @property
    def flow(self) -> str:
        return self._path.rpartition(".")[2]

    @property
    def group(self) -> str:
        """The consumer group under which its positions are published."""
        return f"penstock:{self.namespace}.{self._path}" if self.namespace else f"penstock.{self._path}"

    @property
    def ledger(self) -> str:
        """The topic of its sink's ledger."""
        return self._topic("ledger", self._path)

    @property
    def clock(self) -> str:
        """The topic of its watermarks."""
        return self._topic("clock", self._path + self._suffix("."))

    @property
    def sink(self) -> str:
        """What its sink goes by in ledgers; no flow has a dot in its name."""
        return self.label + self._suffix(".")

    @property
    def undelivered(self) -> str:
        """The topic of results that its target, such as a webhook, did not take."""
        return self._topic("dead-letters", self._path)

    @property
    def redrives(self) -> str:
        """The consumer group whose position says which of those results were redriven."""
        return f"penstock.redrive.{self.undelivered}"

    @property
    def judged(self) -> str:
        """The topic in which its pipeline writes down which malformed records were judged."""
        return self._topic("judged", self.pipeline)

    @property
    def statuses(self) -> str:
        """The topic in which the runner of its pipeline publishes how its flows are."""
        return self._topic("status", self.pipeline)

    def transactional_id(self, lane: int | None = None) -> str:
        """What the broker knows the writer of a lane by, or the only writer there is."""
        return self.group if lane is None else f"{self.group}.{lane}"

    def folder(self, root: str) -> str:
        """Where its checkpoints are, below the folder of all."""
        return self.home(root) + self._suffix("/")

    def home(self, root: str) -> str:
        """Where all of its generations are, below the folder of all flows."""
        below = f"{self.pipeline}/{self.flow}"
        return f"{root}/@{self.namespace}/{below}" if self.namespace else f"{root}/{below}"

    @property
    def owner(self) -> str:
        """Its pipeline, with the namespace."""
        return self.label.rpartition(".")[0]

    def is_beside(self, other: "Identity") -> bool:
        """Whether another flow is of the same pipeline."""
        return self.owner == other.owner

    def maker(self, version: str) -> str:
        """Return what its results say that they were made by."""
        return self.label if version == "1" else f"{self.label}@{version}"

    @property
    def _path(self) -> str:
        return self.label.rpartition(":")[2]

    def _suffix(self, separator: str) -> str:
        return f"{separator}g{self.generation}" if self.generation else ""

    def _topic(self, kind: str, name: str) -> str:
        return f"_penstock.{self.namespace}.{kind}.{name}" if self.namespace else f"_penstock_{kind}.{name}"


def flow_of(sink: str) -> str:
    """Return the label of the flow that a sink's id is of, whatever its generation.

    >>> flow_of("shop.large"), flow_of("shop.large.g2"), flow_of("shop.g2")
    ('shop.large', 'shop.large', 'shop.g2')
    """
    found = _GENERATION.fullmatch(sink)
    return found[1] if found else sink


def is_clock(topic: str) -> bool:
    """Whether a topic is one of watermarks.

    >>> is_clock("_penstock_clock.shop.large"), is_clock("_penstock.team.clock.shop.large"), is_clock("clock")
    (True, True, False)
    """
    return _CLOCK.match(topic) is not None
