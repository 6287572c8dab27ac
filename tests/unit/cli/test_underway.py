"""Long work says what it is; quick work says nothing."""

import time

import pytest

from penstock.cli.underway import underway, until_first_report


def test_long_work_is_said_again_and_again(capsys):
    with underway("comparing", first=0.05, every=0.05):
        time.sleep(0.4)
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("comparing, 0 s so far\n") >= 2


def test_quick_work_and_what_fails_says_nothing(capsys):
    with pytest.raises(ValueError, match="broken"), underway("comparing", first=5):
        raise ValueError("broken")
    assert capsys.readouterr().err == ""


def test_the_first_report_ends_the_waiting(capsys):
    heard = []
    with until_first_report(lambda *each: heard.append(each), "no batch", first=0.05, every=0.05) as report:
        time.sleep(0.2)
        report("copy", "batch 0")
        assert "no batch, 0 s so far\n" in capsys.readouterr().err
        time.sleep(0.2)
        report("copy", "batch 1")
    assert heard == [("copy", "batch 0"), ("copy", "batch 1")]
    assert capsys.readouterr().err == ""
