"""The second part: on three brokers the leader is killed, and what was acknowledged is looked for."""

import time
from collections.abc import Callable
from itertools import count

from penstock.documents import Json
from penstock.errors import LogError
from penstock.lab.experiments.partitions.sender import MARKER, Sender
from penstock.lab.experiments.partitions.trio import Trio
from penstock.lab.run import Run
from penstock.log.cursor import Cursor

_TICK = 0.2
_HELD = 1.0  # seconds for which followers fetch nothing before the leader is killed
_PATIENCE = 90.0
_MORE = 20  # events that are acknowledged again before the log is read back


def work(run: Run) -> None:
    """Start three brokers, and kill a leader whenever the button is pressed."""
    trio = Trio(run)
    run.show(stage="starting three brokers", rounds=[], brokers=[])
    trio.start()
    run.report("three brokers run: replication 3, min.insync.replicas 2")
    rounds: list[Json] = []
    for number in count(1):
        if (done := _round(run, trio, f"round-{number}")) is not None:
            rounds.append(done)
            run.show(rounds=list(rounds), kills=len(rounds), stage="starting the killed broker again")
            trio.start()


def _round(run: Run, trio: Trio, topic: str) -> dict[str, Json] | None:
    """Send until the leader is to be killed, and count; None if other acks were chosen before."""
    acks = str(run.value("acks"))
    trio.make(topic)
    _until(run, trio, topic, lambda: len(trio.partition(topic).isrs) == 3)
    sender = Sender(run, trio.settings, topic, acks)
    try:
        run.show(stage=f"sending with acks={acks}", acks=acks, lost=None, found=None, outage=None)
        while not run.pressed("kill"):
            if run.value("acks") != acks:
                return None
            if run.pressed("add") or run.pressed("remove"):
                run.report("there is no group here: choose “a group on six partitions” and start again")
            _show(run, trio, topic, sender)
            run.rest(_TICK)
        leader = trio.partition(topic).leader
        outage = _kill(run, trio, topic, sender, leader)
    finally:
        sender.stop()
    sender.mark()
    return _counted(run, trio, topic, sender, leader, outage) | {"acks": acks}


def _kill(run: Run, trio: Trio, topic: str, sender: Sender, leader: int) -> float:
    """Hold the followers, kill the leader, let them go on; return the seconds without acknowledgement."""
    run.show(stage="followers are held (SIGSTOP): nothing is replicated")
    with trio.held(leader):
        before = sender.count
        run.report(f"brokers {_others(leader)} are held: what broker {leader} takes now, it has alone")
        deadline = time.monotonic() + _HELD
        while time.monotonic() < deadline:
            run.show(acknowledged=sender.count, sent=sender.sent)
            run.rest(_TICK / 2)
        alone = sender.count - before
        pid = trio.kill(leader)
        killed, at_kill = time.monotonic(), sender.count
    run.report(f"broker {leader} (process {pid}) is killed with -9; {alone} acknowledged while it was alone")
    run.show(stage="waiting for another leader", alone=alone)
    _until(run, trio, topic, lambda: sender.count >= at_kill + _MORE, sender)
    return time.monotonic() - killed


def _counted(run: Run, trio: Trio, topic: str, sender: Sender, leader: int, outage: float) -> dict[str, Json]:
    """Read the log back, and compare it with what was acknowledged."""
    run.show(stage="reading the log back")
    acknowledged, found = sender.acknowledged, _stored(run, trio, topic)
    found.discard(MARKER)
    lost = acknowledged - found
    figures: dict[str, Json] = {
        "acknowledged": len(acknowledged),
        "found": len(acknowledged & found),
        "lost": len(lost),
        "outage": round(outage, 1),
        "leader": leader,
        "then": trio.partition(topic).leader,
    }
    run.show(**{name: figures[name] for name in ("acknowledged", "found", "lost", "outage")})
    run.report(f"{len(acknowledged):,} events were acknowledged; {len(lost):,} of them are not in the log")
    return figures


def _stored(run: Run, trio: Trio, topic: str) -> set[int]:
    """All numbers that the topic has now; a new leader may not know at once how far it may be read."""
    deadline = time.monotonic() + _PATIENCE
    while True:
        try:
            with Cursor(topic, trio.settings) as cursor:
                cursor.start()
                return {int(each.value() or MARKER) for each in cursor.read_to(cursor.ends())}
        except LogError:
            if time.monotonic() > deadline:
                raise
            run.rest(_TICK)


def _until(
    run: Run, trio: Trio, topic: str, reached: Callable[[], bool], sender: Sender | None = None
) -> None:
    deadline = time.monotonic() + _PATIENCE
    while not reached():
        if time.monotonic() > deadline:
            raise LogError(f"topic {topic!r} has no leader after {_PATIENCE:.0f} s", hint="start it again")
        _show(run, trio, topic, sender)
        run.rest(_TICK)


def _show(run: Run, trio: Trio, topic: str, sender: Sender | None) -> None:
    """Who leads, who is in sync, who is dead, and what was acknowledged."""
    partition, states = trio.partition(topic), trio.states()
    run.show(
        brokers=[
            {
                "number": number,
                "state": state,
                "leads": number == partition.leader,
                "in_sync": number in partition.isrs and state == "running",
            }
            for number, state in sorted(states.items())
        ]
    )
    if sender is not None:
        run.show(acknowledged=sender.count, sent=sender.sent)


def _others(leader: int) -> str:
    return " and ".join(str(number) for number in (1, 2, 3) if number != leader)
