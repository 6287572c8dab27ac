"""The first part: six partitions, keys, and a group whose members come and go."""

from penstock.documents import Json
from penstock.lab.crew import Crew
from penstock.lab.experiments.partitions.member import Member
from penstock.lab.experiments.partitions.rebalances import Rebalances
from penstock.lab.experiments.partitions.traffic import Traffic
from penstock.lab.run import Run
from penstock.log import Broker

PARTITIONS, MOST = 6, 8
_TICK = 0.2
_FIRST = 2


def work(run: Run) -> None:
    """Run it until it is over."""
    topic, name, broker = run.name("events"), run.group("group"), Broker(run.settings)
    broker.create(topic, PARTITIONS, -1, {})
    crew = Crew(run.closing)
    run.cleanup.callback(crew.close)
    traffic = Traffic(run, topic)
    crew.start("traffic", traffic.work)
    group = Group(run, topic, name)
    run.cleanup.callback(group.close)
    for _ in range(_FIRST):
        group.add()
    while True:
        crew.check()
        group.steer()
        run.show(**group.figures(broker.offsets(topic)), **_keys(traffic))
        run.rest(_TICK)


class Group:
    """The members that are there now; the first one stays to the end."""

    def __init__(self, run: Run, topic: str, name: str) -> None:
        self._run, self._topic, self._name = run, topic, name
        self._rebalances = Rebalances()
        self._members: list[Member] = []
        self._leaving: list[Member] = []
        self._positions: dict[int, int] = {}

    def add(self) -> None:
        """Let another member join, unless there are eight."""
        taken = {each.number for each in (*self._members, *self._leaving)}
        free = [number for number in range(1, MOST + 1) if number not in taken]
        if len(self._members) < MOST and free:
            made = Member(self._run, free[0], self._topic, self._name, self._rebalances)
            self._members.append(made)
            self._run.report(f"consumer {free[0]} joins the group")

    def remove(self) -> None:
        """Let the newest member leave; the first one stays."""
        if len(self._members) > 1:
            gone = self._members.pop()
            gone.ask_to_leave()
            self._leaving.append(gone)
            self._run.report(f"consumer {gone.number} leaves the group")

    def steer(self) -> None:
        """Do what buttons ask for."""
        for _ in range(self._run.pressed("add")):
            self.add()
        for _ in range(self._run.pressed("remove")):
            self.remove()
        if self._run.pressed("kill"):
            self._run.report("to kill a leader, choose “acks on three brokers” and start again")
        self._leaving = [each for each in self._leaving if not each.is_gone]
        for each in self._members:
            if each.failure is not None:
                raise each.failure

    def figures(self, offsets: dict[int, tuple[int, int]]) -> dict[str, Json]:
        """What is shown: who has which partition, and how far behind its reader is."""
        owners = self._rebalances.held()
        for each in self._members:
            self._positions |= each.positions
        ends = {partition: end for partition, (_, end) in offsets.items()}
        lags = {each: max(0, end - self._positions.get(each, 0)) for each, end in ends.items()}
        busy = set(owners.values())
        return {
            "partitions": [
                {"owner": owners.get(each, 0), "end": ends[each], "lag": lags[each]} for each in sorted(ends)
            ],
            "members": [
                {"number": each.number, "handled": each.handled, "idle": each.number not in busy}
                for each in self._members
            ],
            "consumers": len(self._members),
            "idle": sum(each.number not in busy for each in self._members),
            "events": sum(ends.values()),
            "lag": sum(lags.values()),
            **self._rebalances.figures(),
        }

    def close(self) -> None:
        """Let all members leave."""
        for each in self._members:
            each.ask_to_leave()
        for each in (*self._members, *self._leaving):
            each.leave()


def _keys(traffic: Traffic) -> dict[str, Json]:
    """Which keys each partition has, by what was acknowledged."""
    found = traffic.partition_of()
    ordered = sorted(found.items(), key=lambda each: int(each[0].partition("-")[2]))
    return {"keys": [[key, partition] for key, partition in ordered], "sent": traffic.sent}
