"""Settings: frozen values from penstock.toml, PENSTOCK_* variables and the services running locally."""

import json
import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self

from penstock.documents import JsonObject
from penstock.errors import SettingsError
from penstock.identity import NAMESPACE

__all__ = ["Secret", "Settings"]

ENDPOINTS = "endpoints.json"

_SECRET_WORDS = ("password", "secret", "private", "pem", "jaas", "token")
_NO_SECRETS = ("location", "file", "path", "mechanism", "enabled")  # what names like the above may end with
_KAFKA_VARIABLE = "PENSTOCK_KAFKA_"
_SPARK_SECRETS = "PENSTOCK_SPARK_SECRETS"
_SERVERS = (
    "registry",
    "gateway",
    "metrics",
    "console",
)  # each has a section, and PENSTOCK_<NAME>_* variables
_CONNECTIONS = "PENSTOCK_CONNECTIONS"
_PASSWORD = re.compile(r"(passw|pwd|token|secret|key)\w*\s*=|://[^/@\s]*:[^/@\s]+@", re.IGNORECASE)
_CREDENTIALS = ("key", "credential", "passphrase", "pwd")  # in a connection, besides the words above
_KNOWN = (
    "kafka", "postgres", "connections", "spark", *_SERVERS, "data", "checkpoints", "modules", "namespace",
)  # fmt: skip


@dataclass(frozen=True)
class Secret:
    """A value that is kept out of every log, error and representation.

    >>> Secret("hunter2")
    Secret(***)
    """

    value: str

    def __repr__(self) -> str:
        return "Secret(***)"

    __str__ = __repr__


@dataclass(frozen=True)
class Settings:
    """Where the log and the database are, and how to reach them.

    >>> Settings(kafka={"bootstrap.servers": "broker:9092"}).kafka["bootstrap.servers"]
    'broker:9092'

    `kafka` holds Kafka's own setting names and reaches every client unchanged; `spark` holds Spark's, such as
    spark.master. `checkpoints` is where flows keep theirs, a folder or an address of Hadoop's file systems.
    `connections` are the databases and services that tables and targets name, each with its `dsn` or `url`.
    `modules` are the Python modules in which the command line looks for topics and pipelines; `registry`,
    `gateway`, `metrics` and `console` hold the tokens and the limits of these servers. `namespace` keeps the
    flows of teams that share a cluster apart: what flows leave behind (groups, ledgers, clocks, checkpoints)
    has it in its name.
    """

    kafka: Mapping[str, str | Secret] = field(default_factory=dict)
    postgres: str | Secret | None = None
    spark: Mapping[str, str | Secret] = field(default_factory=dict)
    data: Path = Path(".penstock")
    checkpoints: str | None = None
    modules: tuple[str, ...] = ()
    registry: Mapping[str, str | Secret] = field(default_factory=dict)
    gateway: Mapping[str, str | Secret] = field(default_factory=dict)
    metrics: Mapping[str, str | Secret] = field(default_factory=dict)
    console: Mapping[str, str | Secret] = field(default_factory=dict)
    connections: Mapping[str, Mapping[str, str | Secret]] = field(default_factory=dict)  # all of it secret
    namespace: str = ""

    def __post_init__(self) -> None:
        if self.namespace and not NAMESPACE.fullmatch(self.namespace):
            raise SettingsError(
                f"namespace is {self.namespace!r}",
                hint="use up to 40 small letters, digits, _ and -, the first one no sign",
            )
        for name in ("kafka", "spark", *_SERVERS):
            guarded = {key: guard(key, value) for key, value in getattr(self, name).items()}
            object.__setattr__(self, name, MappingProxyType(guarded))
        if isinstance(self.postgres, str):
            object.__setattr__(self, "postgres", Secret(self.postgres))
        named = {name: MappingProxyType(_guarded(each)) for name, each in self.connections.items()}
        object.__setattr__(self, "connections", MappingProxyType(named))

    @classmethod
    def load(cls, folder: Path | None = None, environ: Mapping[str, str] | None = None) -> Self:
        """Read penstock.toml in `folder`; variables win over the file, the file over local services."""
        folder = Path.cwd() if folder is None else folder
        environ = os.environ if environ is None else environ
        written = _from_file(folder / "penstock.toml", environ) | _plain_variables(environ)
        data = folder / written.get("data", ".penstock")
        local = _local_endpoints(data)
        kafka = local.get("kafka", {}) | written.get("kafka", {}) | _kafka_variables(environ)
        return cls(
            kafka=kafka,
            postgres=written.get("postgres", local.get("postgres")),
            spark=written.get("spark", {}) | _spark_secrets(environ),
            data=data,
            checkpoints=written.get("checkpoints"),
            modules=tuple(written.get("modules", ())),
            registry=written.get("registry", {}) | _server_variables("registry", environ),
            gateway=written.get("gateway", {}) | _server_variables("gateway", environ),
            metrics=written.get("metrics", {}) | _server_variables("metrics", environ),
            console=written.get("console", {}) | _server_variables("console", environ),
            connections=_local_connections(local)
            | written.get("connections", {})
            | _connections_variable(environ),
            namespace=str(written.get("namespace", "")),
        )

    @property
    def flows(self) -> str:
        """Where the checkpoints of flows are."""
        return self.checkpoints or str(self.data.absolute() / "flows")

    def connection(self, name: str) -> Mapping[str, str | Secret]:
        """Return the settings of a connection, or say which ones there are."""
        if name not in self.connections:
            raise SettingsError(
                f"there is no connection {name!r}",
                hint=f"known are {', '.join(sorted(self.connections)) or 'none'}; name it in penstock.toml: "
                f'[connections.{name}] dsn = {{ env = "…" }}',
            )
        return self.connections[name]

    def dsn(self, connection: str | None = None) -> Secret:
        """Return the address of the database that a connection names, `postgres` without a name."""
        found = self.postgres if connection is None else self.connection(connection).get("dsn")
        if found is None and connection is not None:
            raise SettingsError(
                f"connection {connection!r} has no dsn",
                hint=f"it has {', '.join(self.connection(connection))}",
            )
        if found is None:
            raise SettingsError(
                "no database is known",
                hint="run `penstock up`, set postgres in penstock.toml or PENSTOCK_POSTGRES, or name a "
                "connection",
            )
        return Secret(reveal(found))

    def url(self, connection: str) -> Secret:
        """Return the address of the service that a connection names."""
        found = self.connection(connection).get("url")
        if found is None:
            raise SettingsError(
                f"connection {connection!r} has no url",
                hint=f"it has {', '.join(self.connection(connection)) or 'nothing'}",
            )
        return Secret(reveal(found))

    def with_kafka(self, **changes: str) -> Self:
        """Return a copy with Kafka settings changed; dots are written as underscores."""
        renamed = {name.replace("_", "."): value for name, value in changes.items()}
        return replace(self, kafka={**self.kafka, **renamed})

    def client(self) -> dict[str, str]:
        """Return what every Kafka client is given, with secrets in the clear: never log it."""
        if "bootstrap.servers" not in self.kafka:
            raise SettingsError(
                "no Kafka broker is known",
                hint="run `penstock up`, or set bootstrap.servers in penstock.toml [kafka] "
                "or PENSTOCK_KAFKA_BOOTSTRAP_SERVERS",
            )
        return {name: reveal(value) for name, value in self.kafka.items()}

    def environment(self) -> dict[str, str]:
        """Return the variables that give another process these settings, with secrets in the clear."""
        found = {
            _KAFKA_VARIABLE + name.upper().replace(".", "_"): value for name, value in self.client().items()
        }
        for server in _SERVERS:
            values: Mapping[str, str | Secret] = getattr(self, server)
            found |= {_variable(server) + name.upper(): reveal(value) for name, value in values.items()}
        found["PENSTOCK_DATA"] = str(self.data.absolute())
        if self.postgres is not None:
            found["PENSTOCK_POSTGRES"] = reveal(self.postgres)
        if self.checkpoints is not None:
            found["PENSTOCK_CHECKPOINTS"] = self.checkpoints
        found["PENSTOCK_NAMESPACE"] = self.namespace  # also if there is none: the folder's file may have one
        secrets = {name: value.value for name, value in self.spark.items() if isinstance(value, Secret)}
        if secrets:
            found[_SPARK_SECRETS] = json.dumps(secrets)
        if self.connections:
            named = {
                name: {key: reveal(value) for key, value in each.items()}
                for name, each in self.connections.items()
            }
            found[_CONNECTIONS] = json.dumps(named)
        return found


def reveal(value: str | Secret) -> str:
    """Return the text of a setting, secret or not."""
    return value.value if isinstance(value, Secret) else value


def guard(name: str, value: str | Secret) -> str | Secret:
    """Return a setting as a secret if its name says that it is one.

    >>> guard("spark.ssl.keyPassword", "hunter2"), guard("spark.master", "local")
    (Secret(***), 'local')
    """
    known = name.lower()
    sensitive = any(word in known for word in _SECRET_WORDS) and not known.endswith(_NO_SECRETS)
    return Secret(value) if sensitive and isinstance(value, str) else value


def _from_file(path: Path, environ: Mapping[str, str]) -> dict[str, Any]:
    if not path.exists():
        return {}
    try:
        written = tomllib.loads(path.read_text())
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"{path.name} is not valid TOML: {error}") from error
    unknown = set(written).difference(_KNOWN)
    if unknown:
        raise SettingsError(
            f"penstock.toml has an unknown setting {min(unknown)!r}",
            hint=f"known are {', '.join(_KNOWN)}",
        )
    written["kafka"] = {
        name: _resolve(f"kafka.{name}", value, environ) for name, value in _flat(written.get("kafka", {}))
    }
    written["spark"] = {
        f"spark.{name}": _resolve(f"spark.{name}", value, environ)
        for name, value in _flat(written.get("spark", {}))
    }
    for server in _SERVERS:
        written[server] = {
            name: _resolve(f"{server}.{name}", value, environ)
            for name, value in _flat(written.get(server, {}))
        }
    written["connections"] = _written_connections(written.get("connections", {}), environ)
    if "postgres" in written:
        written["postgres"] = _resolve_address("postgres", written["postgres"], environ)
    return written


def _written_connections(written: object, environ: Mapping[str, str]) -> dict[str, dict[str, str | Secret]]:
    if not isinstance(written, dict) or not all(isinstance(each, dict) for each in written.values()):
        raise SettingsError(
            "connections in penstock.toml are tables", hint='write [connections.shop] dsn = { env = "…" }'
        )
    return {
        name: {
            key: _resolve_address(f"connections.{name}.{key}", value, environ) for key, value in _flat(each)
        }
        for name, each in written.items()
    }


def _resolve_address(name: str, value: object, environ: Mapping[str, str]) -> str | Secret:
    """Resolve a setting that may be an address: one with a password in the clear is refused."""
    credential = any(word in name.rpartition(".")[2].lower() for word in _CREDENTIALS)
    if isinstance(value, str) and (credential or _PASSWORD.search(value)):
        raise SettingsError(
            f"{name} holds a password in the clear in penstock.toml",
            hint=f'refer to it: {name} = {{ env = "…" }} or {{ file = "…" }}',
        )
    return _resolve(name, value, environ)


def _guarded(connection: Mapping[str, str | Secret]) -> dict[str, Secret]:
    """All of a connection is kept from sight: nobody can know which part of it lets one in."""
    return {key: Secret(reveal(value)) for key, value in connection.items()}


def _flat(table: Mapping[str, object], prefix: str = "") -> list[tuple[str, object]]:
    """TOML reads `sasl.password = …` as a table in a table: bring the dotted names back."""
    entries: list[tuple[str, object]] = []
    for name, value in table.items():
        if isinstance(value, dict) and not value.keys() <= {"env", "file"}:
            entries += _flat(value, f"{prefix}{name}.")
        else:
            entries.append((prefix + name, value))
    return entries


def _resolve(name: str, value: object, environ: Mapping[str, str]) -> str | Secret:
    match value:
        case {"env": str(variable)}:
            if variable not in environ:
                raise SettingsError(f"{name} refers to the variable {variable}, which is not set")
            return Secret(environ[variable])
        case {"file": str(path)}:
            try:
                return Secret(Path(path).read_text().strip())
            except OSError as error:
                raise SettingsError(f"{name} refers to a file that can't be read: {error}") from error
        case bool():
            return str(value).lower()
        case str() | int() | float():
            if isinstance(guard(name, str(value)), Secret):
                raise SettingsError(
                    f"{name} is written in the clear in penstock.toml",
                    hint=f'refer to it: {name} = {{ env = "…" }} or {{ file = "…" }}',
                )
            return str(value)
    raise SettingsError(f"{name} is a {type(value).__name__}, expected text, a number or true/false")


def _plain_variables(environ: Mapping[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if "PENSTOCK_DATA" in environ:
        found["data"] = environ["PENSTOCK_DATA"]
    if "PENSTOCK_POSTGRES" in environ:
        found["postgres"] = Secret(environ["PENSTOCK_POSTGRES"])
    if "PENSTOCK_CHECKPOINTS" in environ:
        found["checkpoints"] = environ["PENSTOCK_CHECKPOINTS"]
    if "PENSTOCK_NAMESPACE" in environ:
        found["namespace"] = environ["PENSTOCK_NAMESPACE"]
    if "PENSTOCK_MODULES" in environ:
        found["modules"] = environ["PENSTOCK_MODULES"].split(",")
    return found


def _spark_secrets(environ: Mapping[str, str]) -> dict[str, Secret]:
    """What `environment` hands on: as variables, because a program's arguments are seen by everybody."""
    try:
        found = json.loads(environ.get(_SPARK_SECRETS, "{}"))
        return {str(name): Secret(str(value)) for name, value in found.items()}
    except (ValueError, AttributeError):
        raise SettingsError(f"{_SPARK_SECRETS} is not a JSON object of names and values") from None


def _connections_variable(environ: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """All connections as a JSON object, as `environment` hands them on."""
    try:
        found = json.loads(environ.get(_CONNECTIONS, "{}"))
        return {
            str(name): {str(key): str(value) for key, value in each.items()} for name, each in found.items()
        }
    except (ValueError, AttributeError):
        raise SettingsError(f"{_CONNECTIONS} is not a JSON object of connections") from None


def _kafka_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """PENSTOCK_KAFKA_SASL_USERNAME is sasl.username: no Kafka client setting has an underscore."""
    return {
        name.removeprefix(_KAFKA_VARIABLE).lower().replace("_", "."): value
        for name, value in environ.items()
        if name.startswith(_KAFKA_VARIABLE)
    }


def _variable(server: str) -> str:
    return f"PENSTOCK_{server.upper()}_"


def _server_variables(server: str, environ: Mapping[str, str]) -> dict[str, str]:
    """PENSTOCK_REGISTRY_TOKEN is the registry's token."""
    first = _variable(server)
    return {
        name.removeprefix(first).lower(): value for name, value in environ.items() if name.startswith(first)
    }


def _local_connections(local: JsonObject) -> dict[str, dict[str, str]]:
    """A local Redis is the connection of its name, unless there is another of that name."""
    found = local.get("redis")
    return {"redis": {"url": found}} if isinstance(found, str) else {}


def _local_endpoints(data: Path) -> JsonObject:
    """What `penstock up` wrote down about the services it started, if they were started here."""
    try:
        found = json.loads((data / ENDPOINTS).read_text())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
