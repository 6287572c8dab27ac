"""The parent of Spark's Python workers: what nearly all of them need is loaded once, before they are forked.

A worker of its own would spend half a second on it, in every task that starts one. Two things that workers do
would cost more than most of their tasks: after each task they look for garbage in all that there is, so what
is there before the fork is put out of sight; and when they begin they read the directory of PySpark's archive
again for each of its packages, so its finders are forgotten.
"""

import gc
import sys
from zipimport import zipimporter

import confluent_kafka  # noqa: F401
import pandas  # type: ignore[import-untyped]  # noqa: F401
import polars  # noqa: F401
import psycopg  # noqa: F401
import pyarrow.compute  # noqa: F401
import pyspark.worker  # noqa: F401
from pyspark.daemon import manager


def lighten() -> None:
    """Spare workers what they would do in vain."""
    for path, finder in list(sys.path_importer_cache.items()):
        if isinstance(finder, zipimporter):
            del sys.path_importer_cache[path]
    gc.collect()
    gc.freeze()


if __name__ == "__main__":
    lighten()
    manager()
