"""A connection to a server in which values are spelled as captures expect them."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, NoReturn, Self

from penstock.capture.mysql.address import Address
from penstock.capture.pgoutput import Values
from penstock.errors import CaptureError, PenstockError, SetupError, SourceError
from penstock.settings import Secret

if TYPE_CHECKING:
    import pymysql

_SESSION = (
    "SET time_zone = '+00:00', sql_mode = 'ALLOW_INVALID_DATES', net_write_timeout = 3600, "
    "wait_timeout = 31536000"
)
# Who has no right to ask; anything else about access passes when the server is back.
_DENIED = {1044, 1045, 1142, 1143, 1227, 1370, 1698, 4166}
_PASSING = {1040, 1053, 1080, 1152, 1158, 1159, 1160, 1161, 1184, 1205, 1213, 1290, 1927, 1969}
# Ways to authenticate that send the password as it is, some if the connection is encrypted by anybody.
_CLEAR = ("mysql_clear_password", "dialog", "sha256_password", "caching_sha2_password")
_CHANGED = {1054, 1146, 1412}  # a table that is another one by now


class Server:
    """Asks a server: `ask` for texts, `rows` for values as the server spells them."""

    def __init__(self, dsn: Secret) -> None:
        address = Address.parse(dsn)
        self.database, self.user = address.database, address.user
        self.connection = _connected(address)
        with explained():
            self.ask(_SESSION)

    def ask(self, query: str, *arguments: object) -> list[tuple[str | None, ...]]:
        """Return the answer's rows as text."""
        with explained(), self.connection.cursor() as cursor:
            cursor.execute(query, arguments or None)
            return [tuple(None if each is None else each.decode() for each in row) for row in cursor]

    def one(self, query: str, *arguments: object) -> str | None:
        """Return the answer's first value; None if there is none."""
        found = self.ask(query, *arguments)
        return found[0][0] if found else None

    def rows(self, query: str) -> Iterator[Values]:
        """Yield the rows of a query one by one; the server waits meanwhile."""
        from pymysql.cursors import SSCursor

        with explained(), self.connection.cursor(SSCursor) as cursor:
            cursor.execute(query)
            for row in cursor:
                yield list(row)

    def literal(self, text: str) -> str:
        """Return a text as SQL takes it."""
        return str(self.connection.escape(text))

    def close(self) -> None:
        with suppress(Exception):
            self.connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def quoted(name: str) -> str:
    """Return a name as SQL takes it, whatever it holds."""
    return "`" + name.replace("`", "``") + "`"


@contextmanager
def explained() -> Iterator[None]:
    """Say what an error of the server means: whether it passes, or somebody has to do something."""
    import pymysql

    try:
        yield
    except pymysql.MySQLError as error:
        raise explanation(error) from None  # its text may hold what was asked
    except (OSError, AttributeError) as error:  # a connection that was lost
        raise SourceError(
            f"the connection to the database is lost: {error}", hint="it is tried again"
        ) from None


def explanation(error: Exception) -> PenstockError:
    """Return an error of the server as one of ours."""
    import pymysql

    code, said = (*error.args, 0, "")[:2]
    text = f"{said or error}"[:300]
    if code in _DENIED:
        return CaptureError(
            f"the database does not let the capture in: {text}",
            hint="`penstock capture role NAME` prints what its user needs",
        )
    if isinstance(error, pymysql.OperationalError | pymysql.InterfaceError) and (
        code in _PASSING or not isinstance(code, int) or code == 0 or code >= 2000
    ):
        return SourceError(f"the database: {text}", hint="is it up, and the address right? it is tried again")
    if code in _CHANGED:
        return SourceError(f"a table has changed while it was read: {text}", hint="it is tried again")
    return CaptureError(f"the database refuses: {text}", hint="see the server's log")


class _Refused:
    """Answers a server that asks for the password itself: over this connection others could read it."""

    def __init__(self, connection: object) -> None:
        pass

    def authenticate(self, _: object) -> NoReturn:
        raise CaptureError(
            "the server asks for the password in plain text, and the connection is not a verified one",
            hint="add ?ssl-ca=FILE to the address; or give the user another way to authenticate, as ed25519",
        )


def _connected(address: Address) -> "pymysql.Connection[Any]":
    try:
        import pymysql
        from pymysql.converters import conversions
    except ImportError:
        raise SetupError(
            "captures of MySQL and MariaDB need pymysql", hint="pip install 'penstock[mysql]'"
        ) from None
    spelled = {kind: write for kind, write in conversions.items() if not isinstance(kind, int)}
    with explained():
        return pymysql.connect(
            host=address.host,
            port=address.port,
            user=address.user,
            password=address.password.encode(),  # or it would be taken for Latin 1
            database=address.database or None,
            ssl={"ca": address.authority} if address.authority else None,
            charset="utf8mb4",
            use_unicode=False,
            conv=spelled,
            autocommit=True,
            connect_timeout=10,
            read_timeout=3600,
            write_timeout=60,
            program_name="penstock",
            auth_plugin_map={} if address.authority else dict.fromkeys(_CLEAR, _Refused),
        )
