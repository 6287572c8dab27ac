"""The parent of Spark's Python workers: what nearly all of them need is loaded once, before they are forked.

A worker of its own would spend the better part of a second on it, in every task that starts one.
"""

import confluent_kafka  # noqa: F401
import pandas  # type: ignore[import-untyped]  # noqa: F401
import polars  # noqa: F401
import psycopg  # noqa: F401
import pyarrow.compute  # noqa: F401
from pyspark.daemon import manager

if __name__ == "__main__":
    manager()
