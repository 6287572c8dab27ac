"""What is read of the bank: balances, monthly statements, and movements for the auditors."""

from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from penstock.apps.bank.account import (
    Closed,
    Deposited,
    MoneyReceived,
    MoneySent,
    Opened,
    Withdrawn,
    account,
)
from penstock.sourcing.columns import as_columns
from penstock.sourcing.totals import count, largest, latest, total
from penstock.sourcing.view import View

_IN, _OUT = (Deposited, MoneyReceived), (Withdrawn, MoneySent)


def movements(records: DataFrame) -> DataFrame:
    """Return a row for each event of an account: how it changed the balance."""
    rows = records.transform(as_columns(account))
    amounts = [*(_amount(cls) for cls in _IN), *(-_amount(cls) for cls in _OUT)]
    return rows.select(
        F.col("stream").alias("account"),
        "version",
        "at",
        "type",
        F.col(Opened.__name__)["owner"].alias("opened"),
        F.col(Closed.__name__).isNotNull().alias("closes"),
        reduce(lambda first, other: F.coalesce(first, other), amounts, F.lit(None)).alias("amount"),
        F.date_trunc("month", "at").cast("date").alias("month"),
    )


balances = View(
    by="account",
    columns={
        "owner": largest("opened"),
        "balance": total("amount"),
        "closed": largest("closes"),
        "version": largest("version"),
    },
    rows=movements,
)
statements = View(
    by=("account", "month"),
    columns={
        "paid_in": total("greatest(amount, 0)"),
        "paid_out": total("-least(amount, 0)"),
        "movements": count("amount"),
        "last_movement": latest("at"),
    },
    rows=lambda records: movements(records).where("amount is not null"),
)


def _amount(cls: type) -> Column:
    return F.col(cls.__name__)["amount"].cast("decimal(18,2)")
