"""Keyed state in Python: the same count and sum on the same topic, with Penstock and with PyFlink.

PyFlink's dependencies are not ours: it gets a virtual environment of its own, made once in the user's cache.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from bench.state import SCHEMA, over_columns
from penstock.local import jars, running
from penstock.local.lock import held
from penstock.log import Broker
from penstock.process import session
from penstock.process.spark.java_client import java_settings
from penstock.process.wire.source import kafka_rows
from penstock.settings import Settings

TOPIC, PARTITIONS, KEYS = "bench.amounts", 2, 100_000
EVENTS, BATCH = 1_000_000, 200_000  # Penstock's; the first batch is not counted
FEWER, WARM, EVERY = 300_000, 100_000, 1_000  # PyFlink's; those that are not counted; how often it looks up
LONGEST = 900  # seconds for either
PYFLINK = "apache-flink==2.3.*"
CONNECTOR = jars.Jar(
    "org.apache.flink",
    "flink-sql-connector-kafka",
    "5.0.0-2.2",
    "5605c691d11a501382c383fecba37a7a552467da5ab7ba904ef5d6f3d62c5616",
)
JOB = Path(__file__).with_name("flink_job.py")


def main() -> None:
    python, connector = prepare()
    with running(services=("kafka",)) as settings, tempfile.TemporaryDirectory() as folder:
        spark = session(name="bench", partitions=PARTITIONS, shuffle=2)
        fill(spark, settings)
        ours = penstock_rate(spark, settings, Path(folder))
        spark.stop()
        theirs = pyflink_rate(python, connector, settings, Path(folder))
    show(ours, theirs)


def show(ours: float, theirs: float) -> None:
    print(f"count and sum for each of {KEYS:,} keys, from a topic of {PARTITIONS} partitions")
    print(f"Penstock: {EVENTS:,} events, batches of {BATCH:,}, a result for each key in a batch, state saved")
    print(f"PyFlink: {FEWER:,} events, a result for each of them, state on the heap, no checkpoints\n")
    print("| what | events/s | of PyFlink's |\n|---|---:|---:|")
    print(f"| PyFlink, keyed process function in thread mode | {theirs:,.0f} | 1.0 |")
    print(f"| Penstock, keyed state over columns | {ours:,.0f} | {ours / theirs:.1f} |")


def fill(spark: SparkSession, settings: Settings) -> None:
    """Write the events, as many to each partition."""
    Broker(settings).create(TOPIC, PARTITIONS, 1, {})
    event = f"named_struct('key', concat('key-', cast(rand(1) * {KEYS} as long)), 'amount', id % 1000 + 0.5D)"
    rows = spark.range(0, EVENTS, 1, 1).selectExpr(
        f"to_json({event}) as value", f"cast(id % {PARTITIONS} as int) as partition"
    )
    options = {f"kafka.{name}": value for name, value in java_settings(settings).items()}
    rows.write.format("kafka").options(**options).option("topic", TOPIC).save()


def penstock_rate(spark: SparkSession, settings: Settings, folder: Path) -> float:
    """Return the rate of the batches after the first."""
    read = kafka_rows(spark, settings, [TOPIC], streaming=True, options={"maxOffsetsPerTrigger": str(BATCH)})
    parsed = read.select(F.from_json(F.col("value").cast("string"), SCHEMA).alias("event")).select("event.*")
    batches = run(over_columns(parsed), folder / "penstock")
    expect(sum(rows for rows, _ in batches), EVENTS, "Penstock")
    return sum(rows for rows, _ in batches[1:]) / sum(seconds for _, seconds in batches[1:])


def run(results: DataFrame, place: Path) -> list[tuple[int, float]]:
    """Take everything that is there; return how many rows each batch had and how long it took."""
    stream = results.writeStream.format("noop").outputMode("append").trigger(availableNow=True)
    query = stream.option("checkpointLocation", str(place)).start()
    if not query.awaitTermination(LONGEST):
        query.stop()
        sys.exit(f"Penstock took longer than {LONGEST} seconds")
    shown = (each for each in query.recentProgress if each["numInputRows"])
    batches = {each["batchId"]: (each["numInputRows"], each["batchDuration"] / 1000) for each in shown}
    return [batches[number] for number in sorted(batches)]


def pyflink_rate(python: Path, connector: Path, settings: Settings, folder: Path) -> float:
    """Return the rate after the first events, by the times that the subtasks noted."""
    marks = folder / "pyflink"
    marks.mkdir()
    ends = {str(each): FEWER // PARTITIONS for each in range(PARTITIONS)}
    kafka = java_settings(settings)
    given = {"kafka": kafka, "topic": TOPIC, "ends": ends, "jar": str(connector), "marks": str(marks)}
    launch(python, given | {"every": EVERY})
    noted = [json.loads(each.read_text()) for each in marks.glob("*.json")]
    expect(sum(each["seen"] for each in noted), FEWER, "PyFlink")
    times: list[float] = sorted(when for each in noted for when in each["times"])[WARM // EVERY :]
    return EVERY * (len(times) - 1) / (times[-1] - times[0])


def launch(python: Path, given: dict[str, object]) -> None:
    """Run the job; its Python is found again by the Java process that runs the functions."""
    packages = next(python.parents[1].glob("lib/python*/site-packages"))
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("FLINK", "PYTHON"))}
    environ |= {"PYTHONPATH": str(packages), "PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}"}
    ended = subprocess.run(
        [python, JOB],
        input=json.dumps(given),
        env=environ,
        cwd=str(given["marks"]),
        capture_output=True,
        text=True,
        timeout=LONGEST,
    )
    if ended.returncode:
        sys.exit(f"PyFlink ended with {ended.returncode}:\n{(ended.stdout + ended.stderr)[-4000:]}")


def expect(seen: int, wanted: int, who: str) -> None:
    if seen != wanted:
        sys.exit(f"{who} took {seen:,} events, {wanted:,} expected")


def prepare() -> tuple[Path, Path]:
    """Return PyFlink's Python and the Kafka connector's jar, after making sure that they are there."""
    cache = jars.cache_folder() / "flink"
    python, done = cache / "venv" / "bin" / "python", cache / "venv" / PYFLINK.replace("*", "x")
    with held(cache / "venv.lock"):
        if not done.exists():
            subprocess.run([sys.executable, "-m", "venv", "--clear", cache / "venv"], check=True)
            subprocess.run([python, "-m", "pip", "install", "--quiet", PYFLINK], check=True)
            done.touch()
    return python, jars.ensure([CONNECTOR], cache) / CONNECTOR.file


if __name__ == "__main__":
    main()
