"""`python -m penstock.cli`: the command line of just this Python."""

from penstock.cli.main import run

run()
