"""Reports of a runner as lines of JSON."""

import io
import json
import logging

import pytest

from penstock.cli.json_log import JsonLog
from penstock.pipeline.reported import Reported


@pytest.fixture
def logger():
    found = logging.getLogger("penstock")
    kept, propagates = list(found.handlers), found.propagate
    yield found
    found.handlers[:], found.propagate = kept, propagates


def lines(out):
    found = [json.loads(line) for line in out.getvalue().splitlines()]
    assert all(each.pop("time").endswith("+00:00") for each in found)
    return found


def test_each_report_is_a_line_with_what_is_known_of_it():
    out = io.StringIO()
    log = JsonLog("shop", out)
    log.report("bill", Reported.of("batch 7: 12 rows in 0.10 s", batch=7))
    log.report("bill", Reported.of("failed:\ntwo lines – and ü", level="error"))
    log.report(None, "done")
    assert lines(out) == [
        {
            "level": "info",
            "pipeline": "shop",
            "flow": "bill",
            "batch": 7,
            "text": "batch 7: 12 rows in 0.10 s",
        },
        {"level": "error", "pipeline": "shop", "flow": "bill", "text": "failed:\ntwo lines – and ü"},
        {"level": "info", "pipeline": "shop", "text": "done"},
    ]


def test_what_is_logged_elsewhere_is_a_line_too(logger):
    out = io.StringIO()
    JsonLog("shop", out).take_over()
    logger.warning("the progress of %s can't be kept", "shop")
    expected = {"level": "warning", "pipeline": "shop", "text": "the progress of shop can't be kept"}
    assert lines(out) == [expected]
