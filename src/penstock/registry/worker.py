"""A process that judges schemas of strangers, with limits, and may be ended at any moment."""

import math
import pickle
import resource
import signal
import traceback
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

import psutil

from penstock.errors import InvalidSchemaError
from penstock.registry.judge import LocalJudge
from penstock.schemas.compatibility.protobuf import compiler

READY = b"ready"
_MEGABYTE = 2**20
_GRACE_S = 2  # an orphan ends itself this long after its deadline


@dataclass(frozen=True)
class Answer:
    """What became of a job; a worker that is `spent` holds too much memory to take another."""

    value: Any = None
    invalid: tuple[str, str, str | None] | None = None
    failure: str = ""
    no_memory: bool = False
    spent: bool = False


def main(file: int, memory: int, seconds: float) -> None:
    """Answer jobs until the other side is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server, which ends its workers
    compiler.run_protoc(compiler.in_this_process)
    judge, connection = LocalJudge(), Connection(file)
    most = _limit_memory(memory)
    with suppress(EOFError, OSError):
        connection.send_bytes(READY)
        while True:
            name, arguments = connection.recv()
            _limit_time(seconds)
            answer = _answer(judge, name, arguments, most)
            connection.send_bytes(pickle.dumps(answer))


def _answer(judge: LocalJudge, name: str, arguments: tuple[object, ...], most: int) -> Answer:
    try:
        return Answer(getattr(judge, name)(*arguments), spent=_vast(most))
    except InvalidSchemaError as error:
        return Answer(invalid=(error.message, error.where, error.hint), spent=_vast(most))
    except MemoryError:
        return Answer(no_memory=True, spent=True)
    except RecursionError:
        return Answer(invalid=("the schemas are nested too deeply", "", "split them into named types"))
    except Exception as error:
        where = "".join(traceback.format_exception(error)[-3:])
        return Answer(failure=f"{type(error).__name__}: {error}\n{where}", spent=True)


def _limit_memory(megabytes: int) -> int:
    """Let the process have so much more than it has; return what it may have without being replaced."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    now = psutil.Process().memory_info().vms
    with suppress(ValueError, OSError):  # not every system can
        resource.setrlimit(resource.RLIMIT_AS, (now + megabytes * _MEGABYTE,) * 2)
    return int(now + megabytes * _MEGABYTE // 2)


def _vast(most: int) -> bool:
    return bool(psutil.Process().memory_info().vms > most)


def _limit_time(seconds: float) -> None:
    """Let the system end the process if nobody else does: its server may be dead."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    until = math.ceil(used.ru_utime + used.ru_stime + seconds + _GRACE_S)
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    resource.setrlimit(resource.RLIMIT_CPU, (until, hard))
