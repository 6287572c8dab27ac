"""Signals to end: the first one is heeded, the others do not disturb the cleaning up."""

import os
import signal

import pytest

from penstock.cli.ending import ending_in_order


def end_with(number, done):
    """Be signalled while it works, and again while it cleans up."""
    with ending_in_order(lambda: done.append("reported")):
        try:
            os.kill(os.getpid(), number)
        finally:
            os.kill(os.getpid(), signal.SIGINT)
            os.kill(os.getpid(), number)
            done.append("cleaned up")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_first_signal_ends_it_and_the_next_is_ignored(number):
    before = signal.signal(number, signal.default_int_handler)  # under nohup, SIGHUP is ignored
    done = []
    try:
        with pytest.raises(KeyboardInterrupt):
            end_with(number, done)
        assert done == ["reported", "cleaned up"]
        assert signal.getsignal(number) is signal.default_int_handler
    finally:
        signal.signal(number, before)


def test_what_was_ignored_still_is():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with ending_in_order(lambda: None):
            os.kill(os.getpid(), signal.SIGHUP)
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)
