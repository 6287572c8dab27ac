"""Code, docs and help use the words of the field: what is banned here has a word that engineers search for.

A space in a pattern is any white space, so that a phrase is found across lines too. Where a file keeps a word
that earlier releases have stored, it is listed with it.
"""

import re
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from penstock.cli.main import app

ROOT = Path(__file__).parents[2]
EVERYWHERE = ("src", "docs", "help")
WITHDRAWN, ACCOUNT = r"(?i)withdrawn?\b", r"\bAccount\b|\baccounts\b"
BANKING = re.compile(
    r"apps/bank/|(lab/experiments/)?sourcing/|testing/given|docs/(sourcing|bank|benchmarks)\.md"
    r"|penstock bank|cli/bank"
)
WORDS = [
    # (what is banned, where, files that keep a stored spelling)
    (r"\bOUTLET|outlets?\b|outlet_", EVERYWHERE, ("process/columns/side_output.py",)),
    (r"\bset aside\b", EVERYWHERE, ()),
    (r"\b_?alarm(s|ed)?\b|_alarm\b|ALARM", EVERYWHERE, ("process/keyed/step.py",)),
    (r"(?i)promis(e|es|ed|ing)\b", EVERYWHERE, ()),
    (WITHDRAWN, EVERYWHERE, ("process/windows/kept.py",)),
    (r"\blookup\.everywhere\b|\bdef everywhere\b", EVERYWHERE, ()),
    (r"replay[-_]dead|\bReplayed\b|\blog\.replay\b", EVERYWHERE, ()),
    (r"(?i)\btold\b|_told\b|\btold_", EVERYWHERE, (
        "process/windows/sessions.py", "process/windows/sliding.py", "process/columns/naming.py")),
    (r"(?<!\.)\b_?tells?\b|\bTells?\b", EVERYWHERE, ()),
    (r"(?i)\brepetitions?\b", EVERYWHERE, ()),
    (r"\bsay=|\bsay: \w+ [|=]|\bself\._?say\b|\b_say\b|\bSay = |`say`", EVERYWHERE, ()),
    (ACCOUNT, EVERYWHERE, ()),
    (r"\.sound\b|\bdef sound\b|repeats_allowed", EVERYWHERE, ()),
    (r"\bstateful\([^()]*\bkeeps=|\bas_of\([^()]*\bkeeps=", EVERYWHERE, ()),
    (r"\bflow\([^()]*\bcheckpoint=|\b(flow|job|Flow|Job)\.pause\b", EVERYWHERE, ()),
    (r"(?i)stretch(es)? of the log", EVERYWHERE, ()),
    (r"(?i)\bfor company\b", EVERYWHERE, ()),
    (r"\bwhat can't be read\b|\b(events?|records?|messages?|letters?) (that|which) (still )?can't be read\b",
     EVERYWHERE, ()),
    (r"\bEar\b|\b_?ear\b", ("src",), ()),
    (r"(?<!\.)\bpasses\(|\bRepeats\b|\blog\.repeats\b|\bowes\(", ("src",), ()),
    (r"\bprocess[./](fitting|reading|held|classes|changes)\b", EVERYWHERE, ()),
    (r"(?i)\bshelf\b", EVERYWHERE, ()),
    (r"\bPLACE\b|\bPLACE_TYPE\b|\bplace_parts\b", ("src",), (
        "process/ranking/top.py", "process/ranking/rising.py", "process/ranking/rises.py")),
]  # fmt: skip


def sources():
    package = ROOT / "src" / "penstock"
    return {path.relative_to(package).as_posix(): path.read_text() for path in package.rglob("*.py")}


def docs():
    paths = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    return {path.relative_to(ROOT).as_posix(): path.read_text() for path in paths}


def commands(command, path=()):
    yield path
    for name, each in getattr(command, "commands", {}).items():
        yield from commands(each, (*path, name))


def helps():
    runner, texts = CliRunner(), {}
    for path in commands(typer.main.get_command(app)):
        shown = runner.invoke(app, [*path, "--help"], env={"COLUMNS": "300", "TERM": "dumb"})
        assert shown.exit_code == 0, shown.output
        texts[" ".join(["penstock", *path])] = shown.output
    return texts


@pytest.fixture(scope="module")
def texts():
    return {"src": sources(), "docs": docs(), "help": helps()}


def uses(pattern, text):
    """The lines in which something banned stands."""
    found = re.finditer(pattern.replace(" ", r"\s+"), text)
    return [f"line {text[: match.start()].count(chr(10)) + 1}: {match[0]!r}" for match in found]


@pytest.mark.parametrize(("pattern", "where", "stored"), WORDS, ids=[each[0] for each in WORDS])
def test_the_fields_words_are_used(texts, pattern, where, stored):
    found = {
        name: uses(pattern, text)
        for place in where
        for name, text in texts[place].items()
        if name not in stored and not (pattern in (WITHDRAWN, ACCOUNT) and BANKING.match(name))
    }
    assert {name: lines for name, lines in found.items() if lines} == {}


@pytest.mark.parametrize(("pattern", "stored"), [(each[0], each[2]) for each in WORDS if each[2]])
def test_a_stored_spelling_is_kept_where_it_is_said_to_be(texts, pattern, stored):
    assert [name for name in stored if not uses(pattern, texts["src"][name])] == []


def test_every_command_has_its_help(texts):
    assert len(texts["help"]) > 30
    assert "penstock topics redrive" in texts["help"]


def test_no_file_has_a_banned_name():
    banned = {"fitting.py", "held.py", "classes.py", "changes.py", "shelf.py", "repeats.py", "replay.py"}
    assert [path for path in sources() if Path(path).name in banned] == []
