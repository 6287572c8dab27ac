"""What stops a query at a row that it can't go on with."""

from pyspark.sql import Column
from pyspark.sql import functions as F

from penstock.errors import DataError


def data_error(message: Column) -> Column:
    """Return what stops a query; whoever runs it finds the error in Spark's text by its name and its line.

    The name is in two parts, so that it is not found in the plan, which Spark's text has, too.
    """
    name = f"{DataError.__module__}.", f"{DataError.__name__}: "
    return F.raise_error(F.concat(*map(F.lit, name), message, F.lit("\n")))
