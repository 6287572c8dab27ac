"""The page about inlets, read from top to bottom: every command runs as it is written."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.walked_page import DOCS, commands

BLOCK = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.fixture
def shell(settings, tmp_path):
    """Runs commands in a folder, against the broker of all tests; what was left running is ended."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | settings.environment() | {"PATH": path, "COLUMNS": "120"}
    background = []

    def run(command):
        if command.endswith("&"):
            words = ["bash", "-c", f"exec {command.rstrip('& ')}"]
            process = subprocess.Popen(
                words, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True
            )
            background.append(process)
            return process.stdout.readline()
        words = ["bash", "-c", command]
        done = subprocess.run(
            words, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
        return done.stdout

    yield run
    for process in background:
        process.terminate()
        assert process.wait(20) == 0


@pytest.mark.long
def test_every_command_of_the_page_about_inlets_runs_as_written(shell):
    blocks = BLOCK.findall((DOCS / "inlets.md").read_text())
    printed = {command: (shell(command), shown) for block in blocks for command, shown in commands(block)}
    assert all(output == shown for output, shown in printed.values() if shown)
    tails = [
        [json.loads(line) for line in output.splitlines()]
        for command, (output, _) in printed.items()
        if "topics tail" in command
    ]
    events, letters = tails
    assert [line["event"]["celsius"] for line in events] == [21.5, 21.7]
    assert [line["value"] for line in letters] == ["hall warm"]
    assert letters[0]["headers"]["penstock.inlet.sender"].startswith("tcp://127.0.0.1:")
