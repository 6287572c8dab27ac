"""The page about capture, read from top to bottom: every command runs as it is written."""

import os
import re
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from penstock.settings import Settings

PAGE = Path(__file__).parents[2] / "docs" / "capture.md"
BLOCK = re.compile(r"^```(console|sql)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def commands(text):
    """The commands of a block; a heredoc is part of its command, what has no $ is what a command says."""
    lines, found = iter(text.splitlines()), []
    for line in lines:
        if line.startswith("$ "):
            command = line[2:]
            if "<<'EOF'" in command:
                for more in lines:
                    command += f"\n{more}"
                    if more == "EOF":
                        break
            found.append(command)
    return found


@pytest.mark.timeout(300)
def test_every_command_of_the_page_runs_as_written(tmp_path):
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PENSTOCK_")}
    environment |= {"PATH": path, "COLUMNS": "120"}
    said: dict[str, str] = {}
    background = []
    try:
        for kind, text in BLOCK.findall(PAGE.read_text()):
            if kind == "sql":
                with psycopg.connect(Settings.load(tmp_path, {}).dsn().value, autocommit=True) as connection:
                    connection.execute(text)
                continue
            for command in commands(text):
                if command.endswith("&"):
                    background.append(_start(command.rstrip("& "), tmp_path, environment))
                else:
                    said[command] = _run(command, tmp_path, environment)
        assert background[0].wait(30) == 0, "a capture that is removed ends"
    finally:
        for process in background:
            process.kill()
        _run("penstock down", tmp_path, environment)
    tail = next(text for command, text in said.items() if "topics tail" in command)
    assert tail.count("ada") >= 2
    assert "class Order(Event)" in said["cat shop_tables.py"]
    assert "running" in said["penstock capture status shop"]


def _start(command, folder, environment):
    """Start a command behind the shell's back, and wait for the line that the page shows."""
    process = subprocess.Popen(
        ["bash", "-c", f"exec {command}"], cwd=folder, env=environment, stdout=subprocess.PIPE, text=True
    )
    assert "now every change" in process.stdout.readline()
    return process


def _run(command, folder, environment):
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout
