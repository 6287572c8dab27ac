"""Makes the archive of Spark's classes; `make setup` calls `python -m penstock.process.spark.make_archive`.

Java writes it when a process ends that was asked to. So a process does a little of what flows do, and ends.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from penstock.process.spark.class_archive import archive
from penstock.process.spark.session import session

_TIMEOUT = 180


def make(made: Path) -> None:
    """Make the archive in a process of its own, in place of those that fitted an older Java or Spark."""
    made.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=made.parent) as folder:
        growing = Path(folder) / made.name
        command = [sys.executable, "-m", "penstock.process.spark.make_archive", str(growing)]
        subprocess.run(command, check=True, timeout=_TIMEOUT, capture_output=True)
        for other in made.parent.glob("spark-*.jsa"):
            other.unlink()
        growing.replace(made)


def work(growing: Path) -> None:
    """Do what flows do, with a Java that writes its classes down."""
    asked = {"spark.driver.extraJavaOptions": f"-XX:ArchiveClassesAtExit={growing}"}
    spark = session(name="archive", config=asked)
    rows = spark.readStream.format("rate").load().withWatermark("timestamp", "5 seconds")
    counts = rows.groupBy(F.window("timestamp", "5 seconds"), F.expr("string(value % 3) as key")).count()
    results = counts.select(F.to_json(F.struct("*")).alias("value"), "key")
    query = results.writeStream.outputMode("update").foreachBatch(_take).start()
    query.processAllAvailable()
    query.stop()
    spark.stop()


def _take(batch: DataFrame, number: int) -> None:  # noqa: ARG001
    passed = batch.repartition(2, "key").mapInArrow(lambda parts: parts, batch.schema)
    passed.write.format("noop").mode("append").save()


def main(arguments: list[str]) -> None:
    """Make the archive unless it is there; flows run without it too, so that a failure is only reported."""
    if arguments:
        work(Path(arguments[0]))
        return
    made = archive()
    if made.exists():
        return
    sys.stderr.write(
        "setup: making an archive of Spark's classes (half a minute), with which flows start sooner\n"
    )
    try:
        make(made)
    except (OSError, subprocess.SubprocessError) as error:
        sys.stderr.write(f"setup: there is no archive, so that flows start more slowly: {error}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
