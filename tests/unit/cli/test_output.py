"""What users call their things is printed as it is, whatever it looks like."""

import pytest

from penstock.cli import output
from penstock.cli.output import show

NAMES = ["a[/b]", "[a-z]", "[bold]x", "a:key:b", "[/]", "x\\", "[link=http://x]y"]


@pytest.mark.parametrize("name", NAMES)
def test_names_in_tables_are_printed_as_they_are(capsys, monkeypatch, name):
    monkeypatch.setattr(output.console, "_file", None)
    show([{"subject": name, "more": {name: name}}], ("subject", "more"), as_json=False, empty="")
    printed = capsys.readouterr().out
    assert name in printed.splitlines()[1]
    assert f"{name}={name}" in printed


@pytest.mark.parametrize("name", NAMES)
def test_names_in_sentences_are_printed_as_they_are(capsys, monkeypatch, name):
    monkeypatch.setattr(output.console, "_file", None)
    show([], (), as_json=False, empty=f"group {name} has no positions")
    assert f"group {name} has no positions" in capsys.readouterr().out
