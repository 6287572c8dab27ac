"""A flow: an ordinary function from DataFrames to a DataFrame, what it reads and writes, its guarantee."""

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property
from typing import Any, Literal, TypedDict, get_args

from pyspark.sql import DataFrame

from penstock.durations import duration
from penstock.errors import FlowError
from penstock.identity import VERSION
from penstock.log import Table, Topic
from penstock.pipeline.projection import Projection
from penstock.targets.side_outputs import target_of
from penstock.targets.target import Guarantee, Mode, Target

Output = Literal["update", "append"]
Function = Callable[..., DataFrame]
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,80}")
_VERSION = re.compile(VERSION)
OWN_HEADERS = "penstock."
_SHORTEST_REALTIME = timedelta(seconds=5)


class FlowOptions(TypedDict, total=False):
    """What may be said of a flow besides what it computes; `Pipeline.flow` documents it."""

    mode: Mode
    guarantee: Guarantee | None
    side_outputs: tuple[Topic[Any], ...]
    looks_up: Mapping[str, Table[Any]]
    checkpoint_interval: str | timedelta | None
    lanes: int | None
    timeout: str | timedelta
    version: str
    options: Mapping[str, str]
    headers: tuple[str, ...]


@dataclass(frozen=True)
class Flow:
    """What a flow is; `Pipeline.flow` makes one of a function and documents the arguments."""

    name: str
    function: Function
    reads: Mapping[str, Topic[Any]]
    writes: Topic[Any] | Target
    mode: Mode = "stream"
    guarantee: Guarantee | None = None
    side_outputs: tuple[Topic[Any], ...] = ()
    looks_up: Mapping[str, Table[Any]] = field(default_factory=dict)
    checkpoint_interval: str | timedelta | None = None
    output: Output = "update"
    lanes: int | None = None
    timeout: str | timedelta = "1 minute"
    version: str = "1"
    options: Mapping[str, str] = field(default_factory=dict)
    headers: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self._check_names()
        self._check_headers()
        self.in_mode(self.mode)

    @cached_property
    def target(self) -> Target:
        """All that it writes, side outputs included."""
        return target_of(self.writes, self.side_outputs)

    @property
    def projection(self) -> Projection | None:
        """Its function, if that is one whose state can be kept."""
        return self.function if isinstance(self.function, Projection) else None

    @property
    def effective_guarantee(self) -> Guarantee:
        """The guarantee that was asked for, or else the first one of its target in its mode."""
        return self.guarantee or self.target.guarantees[self.mode][0]

    @property
    def is_native(self) -> bool:
        """Whether Spark writes its results by itself."""
        return self.target.is_native(self.mode, self.effective_guarantee)

    @property
    def trigger_interval(self) -> str:
        """How often a batch ends and a checkpoint is written, as Spark spells it."""
        default = "10 seconds" if self.mode == "realtime" else "1 ms"
        return f"{duration(self.checkpoint_interval or default) // timedelta(milliseconds=1)} milliseconds"

    def in_mode(self, mode: Mode) -> "Flow":
        """Return the flow in another mode, or say why it can't run in it."""
        if mode not in get_args(Mode):
            raise FlowError(f"flow {self.name!r} has the mode {mode!r}", hint=f"use {_or(get_args(Mode))}")
        guarantee = self.guarantee if mode == self.mode else None
        self._check_target(mode, guarantee)
        if mode == "realtime":
            self._check_realtime()
        if mode == self.mode:
            return self
        changed = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return Flow(**changed | {"mode": mode, "guarantee": guarantee, "checkpoint_interval": None})

    def _check_names(self) -> None:
        check_flow_name(self.name)
        if not isinstance(self.version, str) or not _VERSION.fullmatch(self.version):
            raise FlowError(
                f"flow {self.name!r} has the version {self.version!r}",
                hint="use a text of 1 to 40 letters, digits, and . _ -",
            )
        if not self.reads:
            raise FlowError(
                f"flow {self.name!r} reads nothing", hint='name its topics: reads={"orders": orders}'
            )
        wanted, given = set(inspect.signature(self.function).parameters), {*self.reads, *self.looks_up}
        if wanted != given:
            raise FlowError(
                f"flow {self.name!r} reads {sorted(given)}, its function takes {sorted(wanted)}",
                hint="give each topic the name of an argument",
            )
        strange = [name for name, table in self.looks_up.items() if not _can_be_looked_up(table)]
        if strange:
            raise FlowError(
                f"flow {self.name!r} looks up {strange[0]!r}, which is no table with a key",
                hint='declare it as Table("…", …, key="…")',
            )
        names = [each.name for each in self.reads.values()]
        if len(set(names)) < len(names):
            raise FlowError(
                f"flow {self.name!r} reads a topic twice, and would have two positions in it",
                hint="read it once, and use the DataFrame twice",
            )
        self._refuse_captured_target()
        if isinstance(self.writes, Topic) and self.writes.name in names:
            raise FlowError(f"flow {self.name!r} writes the topic it reads, {self.writes.name!r}")

    def _check_headers(self) -> None:
        if isinstance(self.headers, str) or any(
            not isinstance(name, str) or not name or name.startswith(OWN_HEADERS) for name in self.headers
        ):
            raise FlowError(
                f"flow {self.name!r} passes on the headers {self.headers!r}",
                hint=f'name them: headers=("traceparent",); those of "{OWN_HEADERS}…" are made anew',
            )

    def _refuse_captured_target(self) -> None:
        topic = next((each for each in self.target.topics if each.is_captured), None)
        if topic is not None:
            raise FlowError(
                f"flow {self.name!r} writes {topic.format} to {topic.name!r}, which only a capture writes",
                hint='declare the topic with format="json" or "avro"',
            )

    def _check_target(self, mode: Mode, guarantee: Guarantee | None) -> None:
        possible = self.target.guarantees.get(mode, ())
        why = self.target.limitation(mode, guarantee)
        reason = f": {why}" if why else ""
        if not possible:
            raise FlowError(
                f"flow {self.name!r} can't write a {type(self.writes).__name__} in {mode} mode{reason}",
                hint="write a topic, and let a second flow in stream mode bring that to its target",
            )
        if guarantee is not None and guarantee not in possible:
            raise FlowError(
                f"flow {self.name!r} can't be {guarantee} in {mode} mode{reason}",
                hint=f"guarantee {_or(possible)}"
                + ("" if mode == "stream" else ", or run it in stream mode"),
            )

    def _check_realtime(self) -> None:
        topics = [*self.reads.values(), *self.looks_up.values(), *self.target.topics]
        topic = next((each for each in topics if each.format == "protobuf"), None)
        if topic is not None:
            raise FlowError(
                f"flow {self.name!r} can't run in real-time mode: {topic.name!r} is protobuf, which Python "
                "decodes and encodes for Spark",
                hint='use stream mode, or format="avro"',
            )
        interval = self.checkpoint_interval
        if interval is not None and duration(interval) < _SHORTEST_REALTIME:
            raise FlowError(
                f"flow {self.name!r} has a checkpoint interval of {interval}, expected 5 s or more",
                hint="a batch in real-time mode is long: results don't wait for its end",
            )


def _can_be_looked_up(table: Topic[Any]) -> bool:
    return isinstance(table, Table) and table.key is not None


def _or(words: tuple[str, ...]) -> str:
    return " or ".join(repr(word) for word in words)


def check_flow_name(name: str) -> str:
    """Return the name if a flow may have it."""
    if not _NAME.fullmatch(name):
        raise FlowError(f"{name!r} is not a flow's name", hint="use letters, digits, _ and -")
    return name
