"""Starts a pipeline as `penstock run` does, by a process that outlives the console."""

from dataclasses import dataclass

from penstock.control.action import Outcome
from penstock.control.background import BackgroundAction
from penstock.control.command import Command
from penstock.control.declared_pipeline import DeclaredPipeline
from penstock.control.pipeline_state import PipelineState
from penstock.settings import Settings


@dataclass(frozen=True)
class PipelineStart(BackgroundAction):
    """All flows of a pipeline are started, each where it was."""

    declared: DeclaredPipeline

    @property
    def command(self) -> Command:
        name, module = self.declared.name, self.declared.module
        return Command("pipeline.start", name, ("run", name, f"--module={module}"), claims=(name,))

    def check(self, settings: Settings) -> Outcome:
        state = PipelineState(settings, self.declared.name)
        state.refuse_running()
        for flow in self.declared.flows:
            state.refuse_half_done(flow)
        last = {each.identity.flow: each for each in state.statuses()}
        rows = tuple(
            {
                "flow": flow,
                "version": version,
                "last time": f"version {last[flow].version}, {last[flow].state}" if flow in last else "never",
            }
            for flow, version in self.declared.flows.items()
        )
        count = len(rows)
        return Outcome(f"{count} flow{'s' * (count != 1)} would be started: `{self.command.line}`", rows)
