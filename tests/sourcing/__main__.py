"""`python -m tests.sourcing [--seed 7] [--minutes 10]`: the bank, from commands to views, under kills."""

import argparse
import sys
import tempfile
import time
from pathlib import Path

from tests.sourcing.campaign import run_campaign


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--seed", type=int, default=int(time.time()))
    asked.add_argument("--minutes", type=float, default=10)
    given = asked.parse_args()
    print(f"seed {given.seed}, {given.minutes:g} minutes", flush=True)
    with tempfile.TemporaryDirectory(prefix="penstock-sourcing-") as folder:
        outcome = run_campaign(
            Path(folder), given.seed, 60 * given.minutes, log=lambda line: print(line, flush=True)
        )
        code = outcome.report(
            Path(folder), "no command lost or doubled, no money lost, topics and views as the log gives them"
        )
    sys.exit(code)


if __name__ == "__main__":
    main()
