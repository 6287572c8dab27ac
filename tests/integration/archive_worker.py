"""Archives the topics that it reads from its input, each in a process of its own, which tests may kill.

What takes long to import is imported once; no client of Kafka's is there when it forks.
"""

import os
import sys

import pandas  # noqa: F401

from penstock.archive import ArchiveRunner
from penstock.settings import Settings

for line in sys.stdin:
    child = os.fork()
    if child == 0:
        ArchiveRunner(Settings.load(), [line.strip()]).run(once=True)
        os._exit(0)
    print(child, flush=True)  # noqa: T201
    os.waitpid(child, 0)
    print("ended", flush=True)  # noqa: T201
