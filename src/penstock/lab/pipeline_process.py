"""A pipeline of an experiment as a process of its own: started, killed with -9, and nothing of it left."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from penstock.apps.demo.run import QUICK
from penstock.control.process_identity import identity
from penstock.errors import FlowError
from penstock.identity import Identity
from penstock.pipeline.progress import Progress, ProgressStore
from penstock.settings import Settings
from penstock.testing import Driver

if TYPE_CHECKING:
    from penstock.lab.run import Run

_MOURNING = "from penstock.lab.mourning import end_with\n\n"


class PipelineProcess:
    """Runs `penstock run` for the pipeline that `source` declares, a text of Python.

    Its checkpoints are in a folder of its own, and what it leaves in Kafka has the run's namespace: all of it
    goes with the run, and so does the process; it ends as well when the lab is killed.
    """

    def __init__(
        self,
        run: "Run",
        pipeline: str,
        source: str,
        *,
        spark: Mapping[str, str] | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.pipeline, self._run = pipeline, run
        self.folder = run.folder()
        run.claim()
        self.settings: Settings = replace(
            run.settings,
            data=self.folder,
            checkpoints=None,
            namespace=run.namespace,
            spark={**QUICK, **run.settings.spark, **(spark or {})},
        )
        self.declare(source)
        self.driver = Driver(pipeline, str(self._module), self.settings, environment=environment)

    def start(self) -> None:
        """Start the process; nothing is waited for."""
        self.driver.start()
        self._run.adopt(self)

    @property
    def pid(self) -> int | None:
        return self.driver.pid

    @property
    def alive(self) -> bool:
        return self.driver.alive

    def ask_to_end(self) -> None:
        """What it has not finished goes with the run: there is nothing to wait for."""
        self.kill()

    def kill(self) -> None:
        """End the whole of it with -9: the driver, its JVM, and the workers."""
        if self.driver.alive:  # otherwise its number may be another's by now
            self.driver.kill()

    @property
    def _module(self) -> Path:
        return self.folder / "declared.py"

    def declare(self, source: str) -> None:
        """Declare the pipeline, for the next start."""
        lab = identity(psutil.Process())
        self._module.write_text(f"{_MOURNING}end_with({lab!r})\n{source}")

    def check(self) -> None:
        """Raise if the process has ended by itself."""
        if self.driver.pid is not None and not self.driver.alive:
            raise FlowError(f"the pipeline has ended: {self.driver.last_words()}")

    def identity(self, flow: str) -> Identity:
        """Return what a flow is known by."""
        return Identity.of(self.settings.namespace, self.pipeline, flow)

    def checkpoint(self, flow: str) -> Path:
        """Return the folder in which Spark keeps the checkpoint of a flow."""
        return Path(self.identity(flow).folder(self.settings.flows)) / "checkpoint"

    def recent(self, flow: str, limit: int = 20) -> list[Progress]:
        """Return Spark's reports of a flow's last batches, the newest first."""
        path = self.folder / "progress.db"
        if not path.exists():
            return []
        store = ProgressStore(path)
        try:
            return store.recent(self.identity(flow).owner, flow, limit)
        finally:
            store.close()

    def cpu_seconds(self) -> float:
        """Return the CPU seconds that the process and all its children have used so far."""
        try:
            parent = psutil.Process(self.driver.pid)
            times = [each.cpu_times() for each in (parent, *parent.children(recursive=True))]
        except psutil.Error:
            return 0.0
        return sum(each.user + each.system for each in times)
