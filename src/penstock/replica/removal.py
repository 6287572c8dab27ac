"""The end of a replica: its positions are forgotten, and its tables stay or go."""

from penstock.capture.replication import connect
from penstock.capture.tables import quoted
from penstock.errors import ReplicaError
from penstock.replica.explained import explained
from penstock.replica.ledger import Ledger, label
from penstock.settings import Settings


def removed(settings: Settings, name: str, connection: str | None, *, drop_tables: bool) -> list[str]:
    """Forget a replica that does not run; return its tables."""
    with explained(), connect(settings.dsn(connection), f"penstock replica {name} remove") as opened:
        ledger = Ledger(opened, label(settings.namespace, name))
        if not ledger.is_there() or ledger.declared() is None:
            raise ReplicaError(
                f"there is no replica {name!r} in this database", hint="`penstock replica list`"
            )
        tables = [f"{quoted(each.schema)}.{quoted(each.name)}" for each in ledger.tables().values()]
        with opened.transaction():
            ledger.remove()
            if drop_tables:
                for each in tables:
                    opened.execute(f"DROP TABLE IF EXISTS {each}")
    return tables
