"""A process that does not outlive the lab: it ends with -9, and all of its group with it."""

import os
import signal
import threading
import time

from penstock.control.process_identity import find, is_over
from penstock.documents import JsonObject

_LOOK = 1.0  # seconds


def end_with(lab: JsonObject) -> None:
    """End this process when the one that is described has ended, however that came about."""
    threading.Thread(target=_watch, args=(lab,), name="lab-mourning", daemon=True).start()


def _watch(lab: JsonObject) -> None:
    while (process := find(lab)) is not None and not is_over(process):
        time.sleep(_LOOK)
    is_leader = os.getpgrp() == os.getpid()
    os.kill(-os.getpid() if is_leader else os.getpid(), signal.SIGKILL)
