"""A Debezium connector's JSON as a capture, or a word on what has no counterpart here."""

import json
import re
from typing import Any

from penstock.capture.capture import Capture, SnapshotMode
from penstock.errors import CaptureError

_SNAPSHOTS: dict[str, SnapshotMode] = {
    "initial": "initial",
    "always": "initial",
    "never": "never",
    "no_data": "never",
    "when_needed": "when-needed",
}
# What says how a connector runs, and nothing about what it writes.
_IGNORED = re.compile(
    r"connector\.class|tasks\.max|name|plugin\.name|database\.\w+(\.\w+)*|topic\.creation\..*|"
    r"errors\..*|max\.(batch|queue)\..*|poll\.interval\.ms|snapshot\.(fetch\.size|max\.threads|locking\.mode)|"
    r"publication\.autocreate\.mode|slot\.(drop\.on\.stop|max\.retries|retry\.delay\.ms)|tombstones\.on\.delete|"
    r"heartbeat\..*|status\.update\.interval\.ms|(key|value)\.converter(\..*)?"
)
_KNOWN = {
    "topic.prefix",
    "table.include.list",
    "slot.name",
    "slot.failover",
    "publication.name",
    "snapshot.mode",
    "decimal.handling.mode",
    "interval.handling.mode",
    "heartbeat.interval.ms",
    "provide.transaction.metadata",
}
_FIXED = {
    "time.precision.mode": "adaptive",
    "binary.handling.mode": "bytes",
    "hstore.handling.mode": "json",
    "tombstones.on.delete": "true",
    "unavailable.value.placeholder": "",
}


def from_connector(name: str, text: str, connection: str | None) -> Capture:
    """Return the capture that a connector's JSON describes; its address is taken from `connection`."""
    config = _config(text)
    _refuse_unknown(config)
    if connection is None and "database.hostname" in config:
        raise CaptureError(
            f"the connector reads from {config['database.hostname']}, and no connection is given",
            hint="name that database in penstock.toml, and give --connection",
        )
    prefix = config.get("topic.prefix") or config.get("database.server.name") or name
    heartbeat = config.get("heartbeat.interval.ms", "0")
    return Capture(
        name,
        tables=_tables(config),
        connection=connection,
        format="debezium-avro" if "vro" in config.get("value.converter", "") else "debezium-json",
        snapshot=_snapshot(config),
        prefix=prefix,
        slot=config.get("slot.name", ""),
        publication=config.get("publication.name", ""),
        decimals=config.get("decimal.handling.mode", "precise"),  # type: ignore[arg-type]
        intervals=config.get("interval.handling.mode", "numeric"),  # type: ignore[arg-type]
        heartbeat=f"{int(heartbeat)} ms" if int(heartbeat) else "10 seconds",
        failover=config.get("slot.failover", "false") == "true",
        transactions=config.get("provide.transaction.metadata", "false") == "true",
    )


def _config(text: str) -> dict[str, str]:
    try:
        found: Any = json.loads(text)
    except ValueError as error:
        raise CaptureError(f"the connector's file is not JSON: {error}") from error
    config = found.get("config", found) if isinstance(found, dict) else None
    if not isinstance(config, dict) or "postgresql" not in str(config.get("connector.class", "")).lower():
        raise CaptureError(
            "the file is not of Debezium's PostgreSQL connector",
            hint='it has {"name": …, "config": {"connector.class": "…PostgresConnector", …}}',
        )
    return {str(key): str(value) for key, value in config.items()}


def _refuse_unknown(config: dict[str, str]) -> None:
    unknown = {
        key: f"only {_FIXED[key]!r} can be had" if key in _FIXED else "has no counterpart"
        for key, value in config.items()
        if key not in _KNOWN and not _IGNORED.fullmatch(key) and _FIXED.get(key) != value
    }
    if unknown:
        raise CaptureError(
            "; ".join(f"{key} = {config[key]!r}: {why}" for key, why in unknown.items()),
            hint="take these out of the file if you can do without; transforms are flows here",
        )


def _tables(config: dict[str, str]) -> tuple[str, ...]:
    listed = [each.strip().replace("\\.", ".") for each in config.get("table.include.list", "").split(",")]
    tables = tuple(each for each in listed if each)
    wild = [each for each in tables if not re.fullmatch(r"[\w$]+\.[\w$ ]+", each)]
    if not tables or wild:
        raise CaptureError(
            f"table.include.list is {config.get('table.include.list', '')!r}",
            hint="name each table, as public.orders: a pattern would take in tables that come later",
        )
    return tables


def _snapshot(config: dict[str, str]) -> SnapshotMode:
    mode = config.get("snapshot.mode", "initial")
    if mode not in _SNAPSHOTS:
        raise CaptureError(f"snapshot.mode is {mode!r}", hint=f"known are {', '.join(_SNAPSHOTS)}")
    return _SNAPSHOTS[mode]
