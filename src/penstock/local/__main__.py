"""What `make setup` asks for: `python -m penstock.local java` and `python -m penstock.local jars`."""

import sys

from penstock.errors import PenstockError
from penstock.local import jars, java


def show_java() -> None:
    """Print the Java that would be used."""
    sys.stdout.write(f"{java.find().program}\n")


def fetch_jars() -> None:
    """Fetch what is missing of every set."""
    wanted = [jar for some in jars.manifest().values() for jar in some]
    folder = jars.ensure(wanted, progress=_show)
    sys.stderr.write(f"setup: {len(wanted)} jars are in {folder}\n")


def _show(arrived: int, total: int) -> None:
    """On a terminal the line counts up; in a file only the first and the last are written."""
    terminal = sys.stderr.isatty()
    if terminal or arrived in (1, total):
        end = "\r" if terminal and arrived < total else "\n"
        sys.stderr.write(f"setup: fetching jars {arrived}/{total}{end}")
        sys.stderr.flush()


def main(arguments: list[str]) -> int:
    """Do the step that is named and return its exit code."""
    try:
        {"java": show_java, "jars": fetch_jars}[arguments[0]]()
    except PenstockError as error:
        sys.stderr.write(f"setup: error: {error}\n")
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
