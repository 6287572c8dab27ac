"""One side of the experiment: its workers, each a process, and the book of what they do."""

import threading
import time
from functools import partial

from penstock.documents import JsonObject
from penstock.lab.experiments.queue.book import Book, Task
from penstock.lab.experiments.queue.task import EACH, KEYS
from penstock.lab.run import Run
from penstock.lab.worker import Worker

_MODULE = "penstock.lab.experiments.queue.worker"
_WAIT, _TICK = 2.0, 0.01  # seconds


class Side:
    """The workers of a queue, or of a consumer group."""

    def __init__(self, run: Run, kind: str, topic: str, workers: int) -> None:
        self.kind, self.book = kind, Book(KEYS, EACH)
        self.killed = 0
        self._run, self._lock = run, threading.Lock()
        self._lost: tuple[Task, float] | None = None  # what a killed worker left, and when
        self._takeover: float | None = None
        self._work = float(run.value("work"))
        orders = {"kind": kind, "topic": topic, "group": run.group(kind), "work": self._work}
        self._workers: dict[str, Worker] = {}
        for number in range(1, workers + 1):
            name = f"{number}"
            self._workers[name] = Worker(_MODULE, orders, run, partial(self._hear, name))

    @property
    def pids(self) -> dict[str, int]:
        """The processes that live, by the names of the workers."""
        return {name: each.pid for name, each in self._workers.items() if each.alive}

    def steer(self) -> None:
        """Send the workers how long work takes, when that has changed."""
        work = float(self._run.value("work"))
        for each in self._workers.values():
            each.check()
            if work != self._work:
                each.send({"work": work})
        self._work = work

    def kill(self) -> None:
        """Kill a worker in the middle of a task, unless it is the last one."""
        if len(self.pids) < 2:
            self._run.report(f"the last worker of the {self.kind} is left alive")
            return
        name = self._busy() or max(self.pids)
        self._workers[name].kill()
        self.killed += 1
        with self._lock:
            task = self.book.lose(name)
            self._lost = (task, time.monotonic()) if task else None
        at = f", at task {task[1]} of key {task[0]}" if task else ""
        self._run.report(f"worker {name} of the {self.kind} was killed with -9{at}")

    def _busy(self) -> str | None:
        """Wait a little for a worker that is in the middle of a task, and return its name."""
        until = time.monotonic() + _WAIT
        while time.monotonic() < until:
            with self._lock:
                busy = [name for name in self.book.at_work if name in self.pids]
            if busy:
                return busy[-1]
            self._run.rest(_TICK)
        return None

    def replay(self) -> None:
        """Have the workers go back to the beginning: a queue's have nowhere to go back to."""
        with self._lock:
            self.book.replay()
        for each in self._workers.values():
            each.send({"seek": 0})

    def figures(self) -> JsonObject:
        """What is shown of this side."""
        with self._lock:
            counted = self.book.figures() | {"killed": self.killed, "takeover": self._takeover}
            at_work, rows = dict(self.book.at_work), self.book.rows()
        living = self.pids
        workers = [
            {"name": name, "alive": name in living, "task": at_work.get(name)} for name in self._workers
        ]
        shown = {f"{self.kind}_{name}": each for name, each in counted.items()}
        return shown | {f"{self.kind}_rows": rows, f"{self.kind}_workers": workers}

    def _hear(self, name: str, line: JsonObject) -> None:
        task = (line["key"], line["number"])
        with self._lock:
            if line["word"] == "begun" and self._lost is not None and self._lost[0] == task:
                self._takeover = round(time.monotonic() - self._lost[1], 2)
                self._run.report(f"the {self.kind} hands that task to worker {name} {self._takeover} s later")
                self._lost = None
            self.book.note(name, line["word"], task, line["deliveries"])
        self._run.flow([{"side": self.kind, "worker": name, "word": line["word"], "task": list(task)}])
