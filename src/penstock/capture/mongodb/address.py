"""Addresses of MongoDB: mongodb://user:password@host:port/?replicaSet=name."""

from importlib.util import find_spec

from penstock.errors import SetupError
from penstock.settings import Secret

SCHEMES = ("mongodb", "mongodb+srv")


def is_mongodb(dsn: Secret) -> bool:
    """Whether an address is of MongoDB.

    >>> is_mongodb(Secret("mongodb+srv://shop.example/")), is_mongodb(Secret("postgresql://shop.example/"))
    (True, False)
    """
    return dsn.value.partition(":")[0] in SCHEMES


def require_package() -> None:
    """Refuse where the client of MongoDB is not installed."""
    if find_spec("pymongo") is None:
        raise SetupError("captures of MongoDB need pymongo", hint="pip install 'penstock[mongodb]'")
