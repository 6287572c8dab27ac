"""A pipeline of an experiment as a process of its own: started, killed with -9, and nothing of it left."""

import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from penstock.apps.demo.run import QUICK
from penstock.errors import FlowError
from penstock.identity import Identity
from penstock.log import Broker, Groups
from penstock.log.topic import DEAD_LETTERS
from penstock.pipeline.progress import Progress, ProgressStore
from penstock.settings import Settings
from penstock.testing import Driver

if TYPE_CHECKING:
    from penstock.lab.run import Run


class PipelineProcess:
    """Runs `penstock run` for the pipeline that `source` declares, a text of Python.

    Its checkpoints are in a folder of its own, and what it leaves in Kafka has a namespace of its own: all of
    it goes with the run.
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
        self.folder = Path(tempfile.mkdtemp(prefix="penstock-lab-"))
        run.cleanup.callback(shutil.rmtree, self.folder, ignore_errors=True)
        self.settings: Settings = replace(
            run.settings,
            data=self.folder,
            checkpoints=None,
            namespace=f"lab-{run.id}",
            spark={**QUICK, **run.settings.spark, **(spark or {})},
        )
        run.cleanup.callback(self._remove)
        self.declare(source)
        self.driver = Driver(pipeline, str(self._module), self.settings, environment=environment)
        run.cleanup.callback(self.driver.kill)

    @property
    def _module(self) -> Path:
        return self.folder / "declared.py"

    def declare(self, source: str) -> None:
        """Declare the pipeline, for the next start."""
        self._module.write_text(source)

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

    def _remove(self) -> None:
        """Delete what the pipeline has left in Kafka."""
        settings, namespace = self.settings, self.settings.namespace
        broker, groups = Broker(settings), Groups(settings)
        own = f"_penstock.{namespace}."
        for name in broker.topics():
            if name.startswith(own) or (name.startswith(self._run.name("")) and name.endswith(DEAD_LETTERS)):
                broker.delete(name)
        for group in [each.group for each in groups.all() if f":{namespace}." in each.group]:
            groups.delete(group)
