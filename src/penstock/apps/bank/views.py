"""What is read of the bank: balances, monthly statements, and movements for the auditors."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from penstock.apps.bank.account import (
    Closed,
    Deposited,
    MoneyReceived,
    MoneyReturned,
    MoneySent,
    Opened,
    Withdrawn,
    account,
)
from penstock.sourcing.columns import as_columns
from penstock.sourcing.totals import count, largest, latest, total
from penstock.sourcing.view import View

_IN, _OUT = (Deposited, MoneyReceived, MoneyReturned), (Withdrawn, MoneySent)
_OF_TRANSFERS = (MoneySent, MoneyReceived, MoneyReturned)


def movements(records: DataFrame) -> DataFrame:
    """Return a row for each event of an account: how it changed the balance."""
    rows = records.transform(as_columns(account))
    amounts = [*(_amount(cls) for cls in _IN), *(-_amount(cls) for cls in _OUT)]
    transfers = [F.col(cls.__name__)["transfer"] for cls in _OF_TRANSFERS]
    return rows.select(
        "id",
        F.col("stream").alias("account"),
        "version",
        "at",
        "type",
        F.col(Opened.__name__)["owner"].alias("opened"),
        F.col(Closed.__name__).isNotNull().alias("closes"),
        F.coalesce(*amounts).alias("amount"),
        F.coalesce(*transfers).alias("transfer"),
        F.date_trunc("month", "at").cast("date").alias("month"),
        "actor",
        "correlation",
        *_source(rows),
    )


balances = View(
    by="account",
    columns={
        "owner": largest("opened"),
        "balance": total("coalesce(amount, 0.00BD)"),
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


def audit(records: DataFrame) -> DataFrame:
    """Return each movement of money: on which account, how much, by whom, and in the course of what."""
    found = movements(records).where("amount is not null")
    columns = ("id", "account", "version", "at", "type", "amount", "transfer", "actor", "correlation")
    return found.select(*columns, *_source(found))


def _source(rows: DataFrame) -> list[str]:
    """Where a row comes from in the log, if it comes from there."""
    return [name for name in rows.columns if name == "_source"]


def _amount(cls: type) -> Column:
    return F.col(cls.__name__)["amount"].cast("decimal(18,2)")
