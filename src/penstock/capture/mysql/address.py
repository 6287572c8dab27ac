"""Addresses of MySQL and MariaDB: mariadb://user:password@host:port/database."""

from dataclasses import dataclass, field
from urllib.parse import parse_qsl, unquote, urlsplit

from penstock.errors import CaptureError
from penstock.settings import Secret

SCHEMES = ("mysql", "mariadb")
_HINT = "mariadb://user:password@host:3306/database; write @ in a password as %40; ?ssl-ca=FILE for TLS"
_PORT = 3306


@dataclass(frozen=True)
class Address:
    """Where a server is, and who asks; the password is in no text of it."""

    host: str
    port: int
    user: str
    password: str = field(repr=False)
    database: str = ""
    authority: str | None = None  # the file with the certificates that are trusted, for TLS

    @classmethod
    def parse(cls, dsn: Secret) -> "Address":
        """Take an address apart; what is wrong is said without it: it may hold the password."""
        try:
            found = urlsplit(dsn.value)
            port, more = found.port or _PORT, dict(parse_qsl(found.query, strict_parsing=bool(found.query)))
        except ValueError:
            raise CaptureError("the database's address can't be read", hint=_HINT) from None
        authority = more.pop("ssl-ca", None)
        if found.scheme not in SCHEMES or not found.hostname or not found.username or more:
            odd = f": {', '.join(sorted(more))} is not known" if more else ""
            raise CaptureError(f"the database's address can't be read{odd}", hint=_HINT)
        user, password = unquote(found.username), unquote(found.password or "")
        return cls(found.hostname, port, user, password, unquote(found.path.strip("/")), authority)


def is_mysql(dsn: Secret) -> bool:
    """Whether an address is of MySQL or MariaDB."""
    return dsn.value.partition(":")[0] in SCHEMES
