"""The plan of a flow, made many times while its first batch runs.

In real time the pause at a checkpoint is mostly the planning of the next batch, and Java compiles what it has
run often: the thirtieth plan takes a fifth of the second one's time.
"""

import threading

from py4j.protocol import Py4JError
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

_TIMES = 30


def warm(frame: DataFrame, query: StreamingQuery) -> None:
    """Plan in a thread of its own, as long as the query runs."""
    threading.Thread(target=_plan, args=(frame, query), name="warming", daemon=True).start()


def _plan(frame: DataFrame, query: StreamingQuery) -> None:
    explain = frame.sparkSession._jvm.PythonSQLUtils.explainString  # type: ignore[union-attr]
    for _ in range(_TIMES):
        try:
            if not query.isActive:
                return
            explain(frame._jdf.queryExecution(), "simple")  # of a stream it makes a new plan each time
        except Py4JError:  # the session has ended
            return
