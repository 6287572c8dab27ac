"""Costly work is done by turns: a crowd of browsers holds no thread that others need."""

import threading

import anyio
import pytest

from penstock.console.turns import Turns
from penstock.gateway.refusal import Refusal


class Work:
    """Work that waits until it may end; how much was done at once."""

    def __init__(self):
        self.may_end, self.at_work, self.most = threading.Event(), 0, 0
        self._lock = threading.Lock()

    def __call__(self):
        with self._lock:
            self.at_work += 1
            self.most = max(self.most, self.at_work)
        self.may_end.wait(10)
        with self._lock:
            self.at_work -= 1
        return "done"


async def crowded(count):
    """The answers of so many who ask at once, and the most that were at work."""
    turns, work, answers = Turns("searches", 4), Work(), []

    async def ask():
        try:
            answers.append(await turns.run(work))
        except Refusal as refusal:
            answers.append(refusal.status)

    async with anyio.create_task_group() as group:
        for _ in range(count):
            group.start_soon(ask)
        while work.at_work < min(4, count):
            await anyio.sleep(0.01)
        await anyio.to_thread.run_sync(lambda: None)  # threads of others are free
        work.may_end.set()
    return sorted(answers, key=str), work.most


@pytest.mark.parametrize(("count", "refused"), [(1, 0), (24, 0), (100, 76)])
def test_some_work_some_wait_and_the_others_are_refused(count, refused):
    answers, most = anyio.run(crowded, count)
    assert answers == [429] * refused + ["done"] * (count - refused)
    assert most == min(4, count)
