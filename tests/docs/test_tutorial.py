"""The tutorial, followed to the letter: its files are saved, its commands typed, its output compared."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.terminal import Saved, Terminal, Typed, differing, steps

TUTORIAL = Path(__file__).parents[2] / "docs" / "tutorial.md"


def environment() -> dict[str, str]:
    """That of a reader, who has Penstock on the path and no settings."""
    mine = {
        name: value for name, value in os.environ.items() if not name.startswith(("PENSTOCK_", "PYTEST_"))
    }
    return mine | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{mine['PATH']}", "COLUMNS": "150"}


@pytest.mark.long
def test_its_test_passes_without_a_broker(tmp_path):
    """The quick part: all files of the tutorial, and what it tests them with."""
    for step in steps(TUTORIAL.read_text()):
        if isinstance(step, Saved):
            with (tmp_path / step.name).open("a" if step.added else "w") as file:
                file.write(step.text)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_shop.py"]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=170, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_it_works_from_nothing_to_verified_and_prints_what_it_shows(tmp_path):
    printed = {}
    with Terminal(tmp_path, environment()) as terminal:
        for step in steps(TUTORIAL.read_text()):
            if isinstance(step, Typed) and step.command == "penstock console":
                out = terminal.serve(step.command)
            else:
                out = terminal.follow(step)
            if isinstance(step, Typed):
                printed[step.command] = out
                assert differing(step.shown, out) == [], f"{step.command}\n{out}"
    assert "nothing is missing, nothing unexpected" in printed["penstock verify shop"]
    assert "corrected" in printed["python late_order.py"]
