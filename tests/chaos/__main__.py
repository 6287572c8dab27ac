"""`python -m tests.chaos [--seed 7] [--faults 300]`: a long campaign, recorded in a file."""

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from penstock.process import session
from tests.chaos.campaign import run_campaign


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--seed", type=int, default=int(time.time()))
    asked.add_argument("--faults", type=int, default=300)
    asked.add_argument("--only", default="", help="kinds of faults, as kill_broker,cut_kafka")
    asked.add_argument("--record", type=Path, default=Path("chaos.json"))
    given = asked.parse_args()
    print(f"seed {given.seed}, {given.faults} faults", flush=True)
    spark = session(name="chaos", partitions=2, shuffle=2, config={"spark.driver.memory": "1g"})
    with tempfile.TemporaryDirectory(prefix="penstock-chaos-") as folder:
        mounted = _small_disk(Path(folder))
        try:
            record = run_campaign(
                Path(folder),
                spark,
                given.seed,
                faults=given.faults,
                only=[name for name in given.only.split(",") if name],
                report=lambda line: print(line, flush=True),
            )
        finally:
            if mounted:
                subprocess.run(["umount", "-l", mounted], check=False)
    record.save(given.record)
    print(f"\n{len(record.landed)} faults landed in {record.seconds / 60:.0f} minutes, seed {record.seed}")
    for kind, count in record.counts.most_common():
        print(f"  {count:4} {kind}")
    print("0 lost, 0 duplicate" if record.ok else "NOT OK: see above")
    sys.exit(0 if record.ok else 1)


def _small_disk(folder: Path) -> Path | None:
    """A disk of its own for the checkpoints, so that it can be filled; only root may make one."""
    place = folder / "data" / "flows"
    place.mkdir(parents=True)
    (folder / "data" / "penstock-data").touch()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=200m", "tmpfs", place], check=False)
    if made.returncode:
        print("no disk of its own for the checkpoints: a full one can't be tried")
        return None
    return place


if __name__ == "__main__":
    main()
