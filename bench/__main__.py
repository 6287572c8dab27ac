"""Run every benchmark, or those named: `python -m bench [log …]`."""

import platform
import sys

import psutil

from bench import (
    ads,
    backlog,
    capture,
    console,
    enrichment,
    flink,
    fraud,
    fraud_batch,
    joins,
    kafka_sink,
    lake_sink,
    lambda_kappa,
    latency,
    leaderboard,
    log,
    lookup,
    postgres_sink,
    queues,
    redis_sink,
    rules,
    search_sink,
    sourcing,
    sourcing_large,
    state,
    windows,
)

BENCHMARKS = {
    "log": log.main,
    "queues": queues.main,
    "kafka-sink": kafka_sink.main,
    "postgres-sink": postgres_sink.main,
    "lake-sink": lake_sink.main,
    "redis-sink": redis_sink.main,
    "search-sink": search_sink.main,
    "latency": latency.main,
    "windows": windows.main,
    "state": state.main,
    "rules": rules.main,
    "flink": flink.main,
    "joins": joins.main,
    "joins-large": joins.large,
    "lookup": lookup.main,
    "backlog": backlog.main,
    "fraud": fraud.main,
    "fraud-batch": fraud_batch.main,
    "lambda-kappa": lambda_kappa.main,
    "capture": capture.main,
    "console": console.main,
    "sourcing": sourcing.main,
    "leaderboard": leaderboard.main,
    "sourcing-large": sourcing_large.main,
    "ads": ads.main,
    "enrichment": enrichment.main,
    "enrichment-large": enrichment.large,
}

LARGE = ("joins-large", "enrichment-large", "sourcing-large")  # only if named


def main() -> None:
    names = sys.argv[1:] or [name for name in BENCHMARKS if name not in LARGE]
    unknown = set(names) - set(BENCHMARKS)
    if unknown:
        sys.exit(f"no benchmark called {min(unknown)}; there are {', '.join(BENCHMARKS)}")
    memory = psutil.virtual_memory().total / 2**30
    print(f"{psutil.cpu_count()} cores, {memory:.0f} GiB, Python {platform.python_version()}\n")
    for name in names:
        BENCHMARKS[name]()


if __name__ == "__main__":
    main()
