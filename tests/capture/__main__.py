"""A database, its capture and its broker under kills: `python -m tests.capture [--database mariadb]`."""

import argparse
import sys
import tempfile
import time
from pathlib import Path

from tests.capture.campaign import run_campaign
from tests.capture.subjects import SUBJECTS


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--seed", type=int, default=int(time.time()))
    asked.add_argument("--minutes", type=float, default=20)
    asked.add_argument("--database", choices=SUBJECTS, default="postgres")
    given = asked.parse_args()
    print(f"seed {given.seed}, {given.minutes:g} minutes", flush=True)
    with tempfile.TemporaryDirectory(prefix="penstock-capture-") as folder:
        outcome = run_campaign(
            Path(folder),
            given.seed,
            60 * given.minutes,
            rows=50_000,
            database=given.database,
            say=lambda line: print(line, flush=True),
        )
        code = outcome.report(Path(folder), "0 lost, 0 doubled, every table as in the database")
    sys.exit(code)


if __name__ == "__main__":
    main()
