"""Stops a pipeline that `penstock run` runs on this machine."""

import time
from dataclasses import dataclass

import psutil

from penstock.control.action import Outcome
from penstock.control.process_identity import is_over
from penstock.control.run_registry import RunRegistry
from penstock.errors import FlowError
from penstock.settings import Settings

_PATIENCE = 60.0  # seconds within which its flows end with their batch


@dataclass(frozen=True)
class PipelineStop:
    """The process of a pipeline is asked to end; its flows end with their batch."""

    pipeline: str

    name = "pipeline.stop"

    @property
    def subject(self) -> str:
        return self.pipeline

    def preview(self, settings: Settings) -> Outcome:
        found = self._process(settings)
        return Outcome(f"process {found.pid} would be asked to end; its flows end with their batch")

    def act(self, settings: Settings) -> Outcome:
        found = self._process(settings)
        found.terminate()
        deadline = time.monotonic() + _PATIENCE
        while not is_over(found):
            if time.monotonic() > deadline:
                raise FlowError(f"pipeline {self.pipeline!r} did not end within {_PATIENCE:.0f} s")
            time.sleep(0.1)
        return Outcome(f"stopped {self.pipeline}, which was process {found.pid}")

    def _process(self, settings: Settings) -> psutil.Process:
        found = RunRegistry(settings).stoppable(self.pipeline)
        if found is None:
            raise FlowError(
                f"pipeline {self.pipeline!r} is not run by `penstock run` on this machine",
                hint="stop it where it runs",
            )
        return found
