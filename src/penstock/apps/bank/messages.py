"""Text messages about large withdrawals: a reader of the log that can be added while the bank is at work."""

from dataclasses import dataclass
from datetime import datetime

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from penstock.apps.bank.account import Money
from penstock.apps.bank.pipeline import accounts
from penstock.apps.bank.views import audit
from penstock.events import Event
from penstock.log import Topic
from penstock.pipeline import Pipeline

LARGE = 1_000


@dataclass(frozen=True)
class TextMessage(Event):
    """What is sent to the owner of an account; whoever sends it leaves out what is too old by its `at`."""

    account: str
    amount: Money
    text: str
    at: datetime


text_messages = Topic("bank-messages", TextMessage, key="account")
messages = Pipeline("messages")


@messages.flow(reads={"records": accounts}, writes=text_messages)
def large_withdrawals(records: DataFrame) -> DataFrame:
    """A message for each withdrawal of a thousand and more."""
    amount = (-F.col("amount")).cast("decimal(18,2)")
    large = audit(records).where((F.col("type") == "Withdrawn") & (amount >= LARGE))
    text = F.format_string("%s was taken from your account %s", amount.cast("string"), "account")
    return large.select("account", amount.alias("amount"), text.alias("text"), "at", "_source")
