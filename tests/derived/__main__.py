"""`python -m tests.derived [--seed 7] [--minutes 10]`: a captured table and all of its copies under kills."""

import argparse
import sys
import tempfile
import time
from pathlib import Path

from tests.derived.campaign import run_campaign


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--seed", type=int, default=int(time.time()))
    asked.add_argument("--minutes", type=float, default=10)
    given = asked.parse_args()
    print(f"seed {given.seed}, {given.minutes:g} minutes", flush=True)
    with tempfile.TemporaryDirectory(prefix="penstock-derived-") as folder:
        outcome = run_campaign(
            Path(folder),
            given.seed,
            60 * given.minutes,
            rows=20_000,
            log=lambda line: print(line, flush=True),
        )
        logs = sorted(Path(folder).glob("*.log")) if outcome.wrong else []
        said = "\n".join(f"== {log.name}\n{log.read_text()[-3000:]}" for log in logs)
    for each in outcome.wrong:
        print(each)
    print(said)
    print(f"{len(outcome.faults)} faults, {outcome.transactions} transactions")
    print("NOT OK" if outcome.wrong else "every copy is as its source")
    sys.exit(1 if outcome.wrong else 0)


if __name__ == "__main__":
    main()
