"""Runs a new version of a flow in the shadow of the one at work, and gives one up."""

from dataclasses import dataclass

from penstock.control.action import Outcome
from penstock.control.background import BackgroundAction
from penstock.control.command import Command
from penstock.control.declared_pipeline import DeclaredPipeline
from penstock.control.pipeline_state import PipelineState
from penstock.control.run_registry import shadow_of
from penstock.errors import FlowError
from penstock.settings import Settings


@dataclass(frozen=True)
class FlowShadow(BackgroundAction):
    """The flow as its module describes it reads the whole log, into a target of its own."""

    declared: DeclaredPipeline
    flow: str
    partial: bool = False

    @property
    def command(self) -> Command:
        pipeline, module = self.declared.name, self.declared.module
        words = ("shadow", pipeline, self.flow, f"--module={module}", *(["--partial"] * self.partial))
        return Command("flow.shadow", f"{pipeline}.{self.flow}", words, (shadow_of(pipeline, self.flow),))

    def check(self, settings: Settings) -> Outcome:
        version, state = self.declared.version(self.flow), PipelineState(settings, self.declared.name)
        state.refuse_shadow_running(self.flow)
        state.refuse_half_done(self.flow)
        known = state.generation(self.flow)
        if known is not None and known.building is not None:
            refuse_other_version(self.declared, self.flow, known.made_by)
            return Outcome(f"the shadow (version {version}) would go on where it was: `{self.command.line}`")
        return Outcome(
            f"version {version} would read the log from its beginning, into a target of its own; the one at "
            f"work is not touched: `{self.command.line}`"
        )


@dataclass(frozen=True)
class FlowDiscard(BackgroundAction):
    """The shadow of a flow is given up, with what it has written; the version at work is not touched."""

    declared: DeclaredPipeline
    flow: str

    @property
    def command(self) -> Command:
        pipeline, module = self.declared.name, self.declared.module
        words = ("shadow", pipeline, self.flow, f"--module={module}", "--discard")
        claims = (shadow_of(pipeline, self.flow),)
        return Command("flow.discard", f"{pipeline}.{self.flow}", words, claims, may_be_stopped=False)

    def check(self, settings: Settings) -> Outcome:
        self.declared.version(self.flow)
        state = PipelineState(settings, self.declared.name)
        state.refuse_shadow_running(self.flow)
        state.refuse_half_done(self.flow)
        known = state.generation(self.flow)
        if known is not None and known.building is None:
            raise FlowError(f"flow {self.declared.name}.{self.flow} has no shadow")
        which = "" if known is None else f" (generation {known.building})"
        return Outcome(
            f"the shadow{which} and all that it has written would be removed: `{self.command.line}`"
        )


def refuse_other_version(declared: DeclaredPipeline, flow: str, made_by: str) -> None:
    """Refuse a module whose version is not that of the shadow."""
    wanted, found = made_by.partition(" ")[0], declared.version(flow)
    if wanted and wanted != found:
        raise FlowError(
            f"the shadow of {declared.name}.{flow} is of version {wanted}, and {declared.module} has version "
            f"{found}",
            hint="choose the module that the shadow runs with, or discard it and begin a new one",
        )
