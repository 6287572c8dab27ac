"""A Spark session that is fit for streams: the connector's jars, the state store, and enough task slots."""

import logging
import os
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from penstock.errors import SettingsError
from penstock.local import jars
from penstock.process.spark.class_archive import java_options
from penstock.process.spark.java_output import start_java
from penstock.process.spark.unsignalled import unsignalled
from penstock.settings import Secret, Settings, guard, reveal

_COUNTING = "spark.sql.streaming.stateStore.rocksdb.trackTotalNumberOfRows"
# Real-time mode needs RocksDB and checkpoint format 2, which also keeps a zombie task from spoiling state.
_STATE = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.checkpointFormatVersion": "2",
    # A real-time flow that is killed in its first batch leaves state that no batch knows of: it is not read.
    "spark.sql.streaming.verifyCheckpointDirectoryEmptyOnStart": "false",
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    _COUNTING: "false",
    # One row out for each row in, as in real-time mode: a keyed rule sees every event, not each batch's last.
    "spark.sql.streaming.useStreamlineAggregator": "true",
    # The batching delay of a result in the shuffle: with less, the machine is busy with small messages.
    "spark.shuffle.streaming.networkBufferMaxWaitTimeMs": "5",
}
# What goes wrong is raised; Spark's own log would report it a second time, with everything that is expected.
_QUIET = f"-Dlog4j2.configurationFile={Path(__file__).with_name('log4j2.properties').as_uri()}"
# A damaged length in an Avro message must make a dead letter, not an allocation of two gigabytes.
_LIMITS = " ".join(
    f"-Dorg.apache.avro.limits.{what}.maxLength={most}"
    for what, most in (("bytes", 2**26), ("string", 2**26), ("collectionItems", 10**6))
)
# The code of a few rules is more than 8,000 bytes, and Java would interpret it for ever.
_COMPILED = "-XX:-DontCompileHugeMethods"
# The other one, for HDFS, starts a process for every file that it renames.
_LOCAL_FILES = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
# Settings that the JVM must be started with.
_FOR_JAVA = ("JavaOptions", ".memory", "ClassPath", "LibraryPath")
_SPARKS_REDACTION = "(?i)secret|password|token|access[.]?key"
_PLAIN = {
    "spark.executor.defaultJavaOptions": f"{_LIMITS} {_COMPILED}",
    # Where a column was made, for error texts: eight more calls to Java for each, and a flow has a thousand.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    "spark.scheduler.mode": "FAIR",
    "spark.python.daemon.module": "penstock.process.spark.daemon",
    # Until a Python worker has connected: on a busy machine the usual 15 seconds are not enough.
    "spark.python.authenticate.socketTimeout": "60s",
    # A flow has dozens of generated classes: what does not fit is compiled anew for every batch.
    "spark.sql.codegen.cache.maxEntries": "2000",
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}


def shuffle_parts(settings: Settings | None = None) -> int:
    """Into how many parts keyed state is split, unless it is said: as many as there are cores."""
    given = settings.spark.get("spark.sql.shuffle.partitions") if settings else None
    return int(reveal(given) if given else os.cpu_count() or 2)


def counts_state_rows(spark: SparkSession) -> bool:
    """Return whether Spark's reports say how many rows state has; where it does not count, they say 0."""
    is_rocksdb = "RocksDB" in str(spark.conf.get("spark.sql.streaming.stateStore.providerClass"))
    return not is_rocksdb or str(spark.conf.get(_COUNTING, "true")).lower() == "true"


def session(
    settings: Settings | None = None,
    *,
    name: str = "penstock",
    partitions: int = 4,
    shuffle: int | None = None,
    config: Mapping[str, str] | None = None,
) -> SparkSession:
    """Return a session for flows that read `partitions` Kafka partitions in all.

    `shuffle` is into how many parts keyed state is split; by default as many as there are cores. A local
    master gets a task slot for every partition and every part, because in real-time mode all of them run at
    the same time. `[spark]` in penstock.toml and `config` win over what is chosen here. Secrets among them
    are set once Java runs: its arguments are seen by everybody on the machine.
    """
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    for noisy in ("SQLQueryContextLogger", "py4j"):
        logging.getLogger(noisy).setLevel(logging.CRITICAL)
    parts = shuffle or shuffle_parts(settings)
    chosen = {
        "spark.master": f"local[{partitions + parts}]",
        "spark.sql.shuffle.partitions": str(parts),
        "spark.jars": jars.class_path("spark").replace(os.pathsep, ","),
    }
    asked = {**(settings.spark if settings else {}), **(config or {})}
    given = {key: reveal(value) for key, value in asked.items()}
    secrets = [key for key, value in asked.items() if isinstance(guard(key, value), Secret)]
    if given.get("spark.master", "local").startswith("local"):  # workers find the modules that are found here
        chosen["spark.executorEnv.PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    if settings is None or "://" not in settings.flows:
        chosen["spark.sql.streaming.checkpointFileManagerClass"] = _LOCAL_FILES
    java = {"spark.driver.defaultJavaOptions": f"{_QUIET} {_LIMITS} {_COMPILED} {java_options()}"}
    options = {"spark.app.name": name} | java | _PLAIN | _STATE | chosen | _redaction(secrets) | given
    _refuse_secrets_of_java(secrets)
    if SparkContext._gateway is None:
        _start_java({key: value for key, value in options.items() if key not in secrets})
    builder = SparkSession.builder
    for key, value in options.items():
        builder = builder.config(key, value)
    with unsignalled():
        return builder.getOrCreate()


def _refuse_secrets_of_java(secrets: Sequence[str]) -> None:
    for name in secrets:
        if name.endswith(_FOR_JAVA):
            raise SettingsError(
                f"{name} is a secret, but everybody on the machine sees what Java is started with",
                hint="give Java the secret in a file of its own, and only the file's name in its options",
            )


def _start_java(options: Mapping[str, str]) -> None:
    """Start the JVM with what anybody may see."""
    with unsignalled():
        conf = SparkConf().setAll(list(options.items()))
        SparkContext._ensure_initialized(gateway=start_java(conf), conf=conf)


def _redaction(secrets: Sequence[str]) -> dict[str, str]:
    """Let Spark hide the values, too, whatever their names."""
    names = [re.escape(name) for name in secrets]
    return {"spark.redaction.regex": "|".join([_SPARKS_REDACTION, *names])} if names else {}
