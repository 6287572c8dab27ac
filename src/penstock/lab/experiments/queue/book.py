"""The book of one side: which task was begun and done, by whom, how often, and in which order."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from penstock.documents import JsonObject

Task = tuple[int, int]  # key and number
WAITS, AT_WORK, DONE, OUT_OF_ORDER, REPEATED, REORDERED = ".", "w", "d", "o", "r", "x"


@dataclass
class Book:
    """Counts what workers report; a task counts once, when it is done first.

    >>> book = Book(keys=1, each=2)
    >>> for word, number in [("begun", 1), ("done", 1), ("begun", 0), ("done", 0)]:
    ...     book.note("w1", word, (0, number))
    >>> book.figures()["out_of_order"], book.rows()
    (1, ['od'])
    """

    keys: int
    each: int
    begun: Counter[Task] = field(default_factory=Counter)
    done: set[Task] = field(default_factory=set)
    redelivered: int = 0
    at_work: dict[str, Task] = field(default_factory=dict)  # worker → what it works on
    _out_of_order: set[Task] = field(default_factory=set)
    _repeated: set[Task] = field(default_factory=set)
    _highest: dict[int, int] = field(default_factory=dict)  # of each key, what is done
    _again: set[Task] | None = None  # since the replay

    def note(self, worker: str, word: str, task: Task, deliveries: int = 1) -> None:
        """Note that a worker has begun or done a task, which was delivered so often by then."""
        if word == "begun":
            self._begin(worker, task, deliveries)
        else:
            self.at_work.pop(worker, None)
            self._finish(task)

    def replay(self) -> None:
        """From now on, what was done and is begun again belongs to a replay."""
        self._again = set()

    def lose(self, worker: str) -> Task | None:
        """Note that a worker was killed; return the task that it was working on."""
        return self.at_work.pop(worker, None)

    def rows(self) -> list[str]:
        """A letter for each task, a text for each key."""
        return ["".join(self._states(key)) for key in range(self.keys)]

    def figures(self) -> JsonObject:
        """What has come of it."""
        return {
            "done": len(self.done),
            "redelivered": self.redelivered,
            "out_of_order": len(self._out_of_order),
            "again": len(self._again or ()),
        }

    def _begin(self, worker: str, task: Task, deliveries: int) -> None:
        self.at_work[worker] = task
        if self._again is not None and task in self.done:
            self._again.add(task)
        elif self.begun[task] or deliveries > 1:
            self.redelivered += 1
            self._repeated.add(task)
        self.begun[task] += 1

    def _finish(self, task: Task) -> None:
        if task in self.done:
            return
        key, number = task
        self.done.add(task)
        if number < self._highest.get(key, -1):
            self._out_of_order.add(task)
        self._highest[key] = max(number, self._highest.get(key, -1))

    def _states(self, key: int) -> Iterator[str]:
        working = set(self.at_work.values())
        for number in range(self.each):
            task = (key, number)
            if task in working:
                yield AT_WORK
            elif task not in self.done:
                yield WAITS
            elif task in self._repeated:
                yield REORDERED if task in self._out_of_order else REPEATED
            else:
                yield OUT_OF_ORDER if task in self._out_of_order else DONE
