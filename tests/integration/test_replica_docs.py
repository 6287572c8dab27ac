"""The page about replicas, read from top to bottom: every command runs as it is written."""

import os
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest
from test_capture_docs import BLOCK, _run, commands

from penstock.settings import Settings

PAGE = Path(__file__).parents[2] / "docs" / "replica.md"
FIRST = {"capture": "now every change", "replica": "records applied"}


@pytest.mark.timeout(300)
def test_every_command_of_the_page_about_replicas_runs_as_written(tmp_path):
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PENSTOCK_")}
    environment |= {"PATH": path, "COLUMNS": "120"}
    said, background = {}, []
    try:
        for kind, text in BLOCK.findall(PAGE.read_text()):
            if kind == "sql":
                with psycopg.connect(Settings.load(tmp_path, {}).dsn().value, autocommit=True) as connection:
                    connection.execute(text)
                continue
            for command in commands(text):
                if command.endswith("&"):
                    background.append(_started(command.rstrip("& "), tmp_path, environment))
                else:
                    said[command] = _run(command, tmp_path, environment)
    finally:
        for process in background:
            process.kill()
        _run("penstock down", tmp_path, environment)
    assert "running" in said["penstock replica status copy"]
    assert "equal; compared" in said["penstock replica audit copy"]
    repaired = said["penstock replica audit copy --repair"]
    assert "missing: public.orders 2" in repaired
    assert "different: public.orders 1 in price" in repaired
    assert repaired.splitlines()[-1].startswith("equal")


def _started(command, folder, environment):
    process = subprocess.Popen(
        ["bash", "-c", f"exec {command}"], cwd=folder, env=environment, stdout=subprocess.PIPE, text=True
    )
    assert FIRST[command.split()[1]] in process.stdout.readline()
    return process
