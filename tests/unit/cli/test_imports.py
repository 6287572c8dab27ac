"""Asking for help costs no more than the command line itself: what is heavy is imported where it is used."""

import subprocess
import sys

import pytest

HEAVY = ("confluent_kafka", "pandas", "polars", "psycopg", "pyarrow", "pyspark", "starlette")
PROGRAM = """
import sys
from penstock.cli.main import app
try:
    app(sys.argv[1:])
except SystemExit:
    pass
print([name for name in {heavy} if name in sys.modules], file=sys.stderr)
"""


@pytest.mark.parametrize(
    "words", [["--help"], ["--version"], ["run", "--help"], ["topics", "tail", "--help"]]
)
def test_help_imports_nothing_heavy(words):
    command = [sys.executable, "-c", PROGRAM.format(heavy=HEAVY), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout
    assert done.stderr.splitlines()[-1] == "[]"
