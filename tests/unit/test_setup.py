"""scripts/setup.sh: what it says and how it ends when something is missing."""

import os
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "setup.sh"
TOOLS = ("bash", "dirname", "head", "id", "cat", "sha256sum", "rm")


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    """A PATH with the tools of every machine, and no Python and no Java."""
    folder = tmp_path / "tools"
    folder.mkdir()
    for name in TOOLS:
        (folder / name).symlink_to(f"/usr/bin/{name}")
    return folder


def fake(folder: Path, name: str, script: str) -> Path:
    program = folder / name
    program.write_text(f"#!/bin/bash\n{script}\n")
    program.chmod(0o755)
    return program


def run(steps: str, path: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    command = ["/usr/bin/bash", "-c", f"source {SCRIPT}; {steps}"]
    environ = {"PATH": str(path), "HOME": os.environ.get("HOME", "/"), **variables}
    return subprocess.run(command, env=environ, capture_output=True, text=True, check=False)


def test_no_python(tools: Path) -> None:
    answer = run("find_python", tools)
    assert answer.returncode == 78
    assert "Python 3.11 or newer is needed, none was found; install one" in answer.stderr


def test_an_old_python_is_named(tools: Path) -> None:
    fake(tools, "python3", '[[ $1 == --version ]] && echo "Python 3.9.2" || exit 1')
    answer = run("find_python", tools)
    assert answer.returncode == 78
    assert "python3 is Python 3.9.2" in answer.stderr


def test_the_python_that_is_asked_for_is_taken(tools: Path, tmp_path: Path) -> None:
    mine = fake(tmp_path, "my-python", "exit 0")
    assert run("find_python", tools, PYTHON=str(mine)).stdout.strip() == str(mine)


def test_a_missing_ensurepip_names_the_package(tools: Path) -> None:
    python = fake(tools, "python3.11", '[[ $2 == *ensurepip* ]] && exit 1; echo "3.11"')
    answer = run(f"is_root() {{ false; }}; need_ensurepip {python}", tools)
    assert answer.returncode == 78
    assert "apt-get install python3.11-venv" in answer.stderr


def test_a_missing_ensurepip_is_installed_by_root(tools: Path, tmp_path: Path) -> None:
    python = fake(tools, "python3.11", '[[ $2 == *ensurepip* ]] && exit 1; echo "3.11"')
    fake(tools, "apt-get", f'echo "$@" >> {tmp_path}/installed')
    answer = run(f"is_root() {{ true; }}; need_ensurepip {python}", tools)
    assert answer.returncode == 0
    assert "python3.11-venv" in (tmp_path / "installed").read_text()


@pytest.mark.parametrize("remains", ["", "penstock-unfinished"])
def test_a_half_made_environment_is_made_again(tools: Path, tmp_path: Path, remains: str) -> None:
    venv = tmp_path / "venv"
    (venv / "bin").mkdir(parents=True)
    if remains:
        fake(venv / "bin", "python", "exit 0")
        (venv / remains).touch()
    fake(tools, "python3.11", f'[[ $2 == venv ]] && echo made > {tmp_path}/made; echo "Python 3.11.2"')
    answer = run("need_venv", tools, VENV=str(venv))
    assert answer.returncode == 0, answer.stderr
    assert (tmp_path / "made").exists()
    assert not venv.exists()


def test_no_java_and_no_way_to_install_it(tools: Path) -> None:
    missing = "find_java() { echo 'setup: error: Java 17 or newer is needed' >&2; return 78; }"
    answer = run(f"{missing}; is_root() {{ false; }}; need_java", tools)
    assert answer.returncode == 78
    assert "Java 17 or newer is needed" in answer.stderr


def test_java_is_installed_by_root_from_what_debian_has(tools: Path, tmp_path: Path) -> None:
    fake(tools, "apt-get", f"[[ $* == *default-jre* ]] && : > {tmp_path}/java || exit 100")
    steps = f"is_root() {{ true; }}; find_java() {{ [[ -e {tmp_path}/java ]]; }}; need_java"
    answer = run(steps, tools)
    assert answer.returncode == 0
    assert "installing openjdk-17-jre-headless" in answer.stderr
    assert "installing default-jre-headless" in answer.stderr


def test_no_registry_is_named_in_any_requirement_file() -> None:
    for path in (SCRIPT.parents[1] / "requirements").glob("*.txt"):
        assert "://" not in path.read_text(), path
