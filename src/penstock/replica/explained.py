"""PostgreSQL's errors as ours: what may pass is tried again."""

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from penstock.errors import ReplicaError, SinkError


@contextmanager
def explained() -> Iterator[None]:
    """Turn the errors of either database into ours."""
    try:
        yield
    except (psycopg.OperationalError, psycopg.InterfaceError) as error:
        raise SinkError(f"PostgreSQL: {_words(error)}", hint="it is tried again") from error
    except psycopg.Error as error:
        raise ReplicaError(f"PostgreSQL refuses: {_words(error)}", hint=_hint(error)) from error


def _words(error: psycopg.Error) -> str:
    return " ".join(str(error).split())[:500]


def _hint(error: psycopg.Error) -> str:
    if isinstance(error, psycopg.errors.InsufficientPrivilege):
        return "the role needs CREATE in the copy's database, and SELECT on the source's tables"
    if isinstance(error, psycopg.errors.FeatureNotSupported | psycopg.errors.DependentObjectsStillExist):
        return "does a view or a rule need the column? drop it, and make it again afterwards"
    return "see the server's log"
