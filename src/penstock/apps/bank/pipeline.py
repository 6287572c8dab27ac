"""The bank's read side: flows from the store's topic to tables, each rebuilt from the log at will."""

from pyspark.sql import DataFrame

from penstock.apps.bank import views
from penstock.pipeline import Pipeline
from penstock.sourcing import topic_of
from penstock.targets import PostgresTable

STORE = "bank"
UNHURRIED = "5 seconds"  # between two batches of what nobody waits for
accounts = topic_of(STORE, "account", partitions=2)
bank = Pipeline("bank")


balances = bank.flow(
    name="balances",
    reads={"records": accounts},
    writes=PostgresTable("bank_balances", key="account", write="upsert"),
)(views.balances)

statements = bank.flow(
    name="statements",
    reads={"records": accounts},
    writes=PostgresTable("bank_statements", key=("account", "month"), write="upsert"),
    checkpoint_interval=UNHURRIED,
)(views.statements)


@bank.flow(
    reads={"records": accounts},
    writes=PostgresTable("bank_movements", key="account"),
    checkpoint_interval=UNHURRIED,
)
def movements(records: DataFrame) -> DataFrame:
    """Every movement of money, for the auditors."""
    return views.audit(records)
