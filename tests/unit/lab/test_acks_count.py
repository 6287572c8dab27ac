"""What counts as lost when a leader was killed: the log is read once all before a marker can be read."""

from types import SimpleNamespace

from penstock.lab.experiments.partitions import acks
from penstock.lab.experiments.partitions.sender import MARKER


class Log:
    """A log whose last events can't be read yet; a sender, and what is known of its partition."""

    acknowledged = frozenset({0, 1, 2, 3})
    count = sent = 4

    def __init__(self):
        self.readable = {0, 1}
        self.leader, self.isrs = 2, [2, 3]

    def stop(self):
        pass

    def mark(self):
        self.readable |= {2, MARKER}


def test_what_is_not_replicated_yet_is_not_lost(monkeypatch):
    log = Log()
    run = SimpleNamespace(
        value={"acks": "1"}.get, pressed=lambda name: name == "kill", show=lambda **_: None, report=print
    )
    trio = SimpleNamespace(make=print, partition=lambda _: log, settings=None)
    monkeypatch.setattr(acks, "Sender", lambda *_: log)
    monkeypatch.setattr(acks, "_until", lambda *_: None)
    monkeypatch.setattr(acks, "_kill", lambda *_: 1.5)
    monkeypatch.setattr(acks, "_stored", lambda *_: set(log.readable))
    found = acks._round(run, trio, "round-1")
    assert (found["acknowledged"], found["found"], found["lost"]) == (4, 3, 1)
