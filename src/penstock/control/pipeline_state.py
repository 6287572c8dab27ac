"""How a pipeline stands before something is done with it: who runs it, and which versions are there."""

import socket
import time

import psutil

from penstock.control.run_registry import RunRegistry
from penstock.errors import FlowError
from penstock.identity import Identity
from penstock.log import Broker
from penstock.pipeline.flow_status import FlowStatus, flow_statuses
from penstock.pipeline.generation import Generation, generation_on_disk
from penstock.settings import Settings

_AT_WORK = ("starting", "running", "waiting")


class PipelineState:
    """What is known of a pipeline without Spark: its processes, its flows' last words, its generations."""

    def __init__(self, settings: Settings, pipeline: str) -> None:
        self._settings, self._pipeline = settings, pipeline
        self.registry = RunRegistry(settings)

    def generation(self, flow: str) -> Generation | None:
        """Return which versions of a flow are there; None where that is not on this machine."""
        return generation_on_disk(self._settings, Identity.of(self._settings.namespace, self._pipeline, flow))

    def statuses(self) -> list[FlowStatus]:
        """Return the last words of its flows."""
        topic = Identity.of(self._settings.namespace, self._pipeline, "").statuses
        return flow_statuses(self._settings, [topic], []) if Broker(self._settings).exists(topic) else []

    def refuse_running(self) -> None:
        """Refuse while it runs here or elsewhere; a shadow does not count."""
        self.registry.refuse_held(self._pipeline)
        for each in self.statuses():
            known = self.generation(each.identity.flow)
            is_shadow = known is not None and each.generation == known.building and not known.swapping
            if not is_shadow and is_at_work(each, time.time()):
                self._refuse(each, f"pipeline {self._pipeline!r}")

    def refuse_shadow_running(self, flow: str) -> None:
        """Refuse while the shadow of a flow runs anywhere."""
        self.registry.refuse_held(f"{self._pipeline}.{flow}.shadow")
        known = self.generation(flow)
        if known is None or known.building is None:
            return
        for each in self.statuses():
            is_it = each.identity.flow == flow and each.generation == known.building
            if is_it and is_at_work(each, time.time()):
                self._refuse(each, f"the shadow of {each.label!r}")

    def refuse_half_done(self, flow: str, command: str = "") -> None:
        """Refuse while another command has begun to replace a flow, and was interrupted."""
        known = self.generation(flow)
        if known is not None and known.swapping and known.command != command:
            raise FlowError(
                f"a {known.command} of flow {self._pipeline}.{flow} was begun, and interrupted",
                hint=f"complete that first: {known.command} it again",
            )

    def _refuse(self, status: FlowStatus, what: str) -> None:
        raise FlowError(
            f"{what} is run by process {status.process.replace('/', ', number ', 1)}, heard of "
            f"{max(0.0, time.time() - status.at):.0f} s ago",
            hint="stop it where it runs: one of the two would shut the other out",
        )


def is_at_work(status: FlowStatus, now: float) -> bool:
    """Whether a flow is run by a process that lives, as far as can be known from here."""
    if status.state not in _AT_WORK or status.is_silent(now):
        return False
    host, _, number = status.process.rpartition("/")
    return host != socket.gethostname() or not number.isdigit() or psutil.pid_exists(int(number))
