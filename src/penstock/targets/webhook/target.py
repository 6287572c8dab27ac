"""A webhook as a target: every result is posted to an HTTP endpoint, at least once."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import ClassVar, Self, get_args

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from penstock.durations import duration
from penstock.errors import TargetError
from penstock.process.columns.names import SOURCE
from penstock.process.columns.naming import quoted
from penstock.settings import Settings
from penstock.targets.compared import Compared
from penstock.targets.lanes import LaneSink
from penstock.targets.sink import SinkOptions
from penstock.targets.target import Guarantee, Guarantees, Inspection, Mode, Results, Target
from penstock.targets.webhook.blame import Blame
from penstock.targets.webhook.circuit import Circuit
from penstock.targets.webhook.delivery import Rules
from penstock.targets.webhook.endpoint import Endpoint, check_headers, check_url, resolved
from penstock.targets.webhook.event import Format
from penstock.targets.webhook.lane import DELIVERY, Shape, WebhookLanes
from penstock.targets.webhook.retries import Retries
from penstock.targets.webhook.status import webhook_status

_POINTS = ("claimed", "sent", "committed", "written")
_LIMITS = {
    "exactly-once": "an HTTP endpoint keeps no ledger of ours, so an answer that is lost means a second "
    "request; the receiver knows it by its Idempotency-Key",
    "replay": "a replay would send every event of the log again",
    "realtime": "a request that waits would hold up the stream",
}


@dataclass(frozen=True)
class Webhook(Target):
    """An HTTP endpoint that gets every result as JSON, at least once.

    >>> Webhook(connection="partner", key="customer", retries=Retries(attempts=8)).keys
    ('customer',)

    The address is that of the settings' `connection`, which may also have a `token` (sent as Bearer), a
    `secret` that signs requests, headers (`header.NAME`) and a `ca`; or it is `url`. Results with the same
    `key` are sent in order, one after the other. A request is one result, or up to `batch` of them as a JSON
    array, or as lines of JSON with format="ndjson". `columns` are those of the results that are sent, all by
    default; the `id` always is. `timeout` is how long an answer may take.
    """

    connection: str | None = None
    url: str | None = field(default=None, repr=False)
    key: str | tuple[str, ...] | None = None
    columns: tuple[str, ...] | None = None
    batch: int | None = None
    format: Format = "json"
    headers: Mapping[str, str] = field(default_factory=dict)
    timeout: str | timedelta = "10 seconds"
    connect_timeout: str | timedelta = "5 seconds"
    retries: Retries = field(default_factory=Retries)
    circuit: Circuit = field(default_factory=Circuit)
    blame: Blame = field(default_factory=Blame)

    guarantees: ClassVar[Guarantees] = {"stream": ("at-least-once", "at-most-once")}
    crash_points: ClassVar[tuple[str, ...]] = tuple(f"sink.webhook.{name}" for name in _POINTS)

    def __post_init__(self) -> None:
        if self.connection is None and self.url is None:
            raise TargetError("a webhook has neither a connection nor a url", hint='connection="partner"')
        if self.url is not None:
            check_url(self.url, "url of a webhook")
        if self.batch is not None and (not isinstance(self.batch, int) or not 1 <= self.batch <= 10_000):
            raise TargetError(f"batch is {self.batch!r}, expected a number from 1 to 10000")
        if self.format not in get_args(Format):
            raise TargetError(f"format is {self.format!r}, expected 'json' or 'ndjson'")
        check_headers(self.headers, "a webhook")
        duration(self.timeout), duration(self.connect_timeout)

    @property
    def keys(self) -> tuple[str, ...]:
        return (self.key,) if isinstance(self.key, str) else self.key or ()

    def endpoint(self, settings: Settings) -> Endpoint:
        """Return where requests go, and what lets them in."""
        return resolved(settings, self.connection, self.url, self.headers)

    @property
    def shape(self) -> Shape:
        return Shape(self.keys, self.columns, self.batch, self.format, self.timeout, self.connect_timeout)

    def sink(self, schema: StructType, options: SinkOptions) -> LaneSink:
        missing = [name for name in (*self.keys, *(self.columns or ())) if name not in schema.names]
        if missing:
            raise TargetError(
                f"a webhook sends {missing[0]!r}, which the results don't have",
                hint=f"they have {', '.join(schema.names)}",
            )
        if options.guarantee == "exactly-once":
            raise TargetError(f"a webhook can't be exactly-once: {_LIMITS['exactly-once']}")
        rules = Rules(self.retries, self.circuit, self.blame, options.guarantee == "at-most-once")
        timeout_ms = duration(options.timeout) // timedelta(milliseconds=1)
        kafka, endpoint = options.settings.client(), self.endpoint(options.settings)
        return LaneSink(WebhookLanes(kafka, options.id, endpoint, self.shape, rules, timeout_ms), options)

    def rows(self, results: Results) -> DataFrame:
        """Give each change of a table's row a key of its own: the row keeps its `id` through all of them."""
        made = super().rows(results)
        if not results.of_tables or "id" not in results.frame.columns:
            return made
        if SOURCE not in made.columns:
            raise TargetError(
                f"flow {results.flow!r} sends rows of a table, whose changes all have the row's id, and its "
                "results don't have _source, by which a receiver could know them",
                hint="keep the column _source",
            )
        place = (F.col(SOURCE)[part].cast("string") for part in ("topic", "partition", "offset"))
        return made.withColumn(DELIVERY, F.concat_ws("@", quoted("id").cast("string"), *place))

    def beside(self, name: str) -> Self:
        raise TargetError(
            "a webhook can't be rebuilt: its requests were sent, and would be sent again",
            hint="redrive its dead letters, or let the flow send all again: `penstock run … --begin-anew`",
        )

    def limitation(self, mode: Mode, guarantee: Guarantee | None) -> str | None:
        return _LIMITS.get(mode) or _LIMITS.get(guarantee or "")

    def compare(self, due: DataFrame, inspection: Inspection) -> Compared:
        """Compare numbers with the ledger's: nobody can ask an endpoint what it has taken.

        A result is found if it was answered with success, or is a dead letter.
        """
        counted = due.agg(F.count("*"))
        expected = int(counted.collect()[0][0])
        inspection.ran(counted)
        found = webhook_status(inspection.settings, inspection.flow).settled
        most = inspection.possible().count() if found > expected else expected
        return Compared(expected, found, max(0, expected - found), 0, max(0, found - most))
