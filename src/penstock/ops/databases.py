"""The databases of PostgreSQL that the settings know."""

from penstock.settings import Settings, reveal

_SCHEMES = ("postgres://", "postgresql://")


def databases(settings: Settings) -> list[str | None]:
    """Return their connections by name; None is the local database, or the one that `postgres` names."""
    named = {name: reveal(each["dsn"]) for name, each in settings.connections.items() if "dsn" in each}
    known = [name for name, dsn in named.items() if _is_postgres(dsn)]
    return [*([None] if settings.postgres is not None else []), *known]


def _is_postgres(dsn: str) -> bool:
    """Whether it is an address of PostgreSQL's, or its keywords: `host=… dbname=…`."""
    return dsn.startswith(_SCHEMES) or "=" in dsn.partition("://")[0]
