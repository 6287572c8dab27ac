"""Puts a flow's shadow in the place of the version at work, and the former version back."""

from dataclasses import dataclass

from penstock.control.action import Outcome
from penstock.control.background import BackgroundAction
from penstock.control.command import Command
from penstock.control.declared_pipeline import DeclaredPipeline
from penstock.control.flow_diff import NO_GATE, Comparison, refuse_no_shadow
from penstock.control.pipeline_state import PipelineState
from penstock.control.run_registry import shadow_of
from penstock.documents import JsonObject
from penstock.errors import FlowError
from penstock.pipeline.generation import Generation
from penstock.settings import Settings


@dataclass(frozen=True)
class FlowSwap(BackgroundAction):
    """The pipeline and the shadow have to be stopped; interrupted, the same swap completes it."""

    declared: DeclaredPipeline
    flow: str
    comparison: Comparison = NO_GATE

    @property
    def command(self) -> Command:
        pipeline, module = self.declared.name, self.declared.module
        words = ("swap", pipeline, self.flow, f"--module={module}", *self.comparison.words, "--json")
        return replacing("flow.swap", pipeline, self.flow, words, prints_document=True)

    def check(self, settings: Settings) -> Outcome:
        state, known = _stopped(settings, self.declared, self.flow, "swap")
        if known is not None and known.swapping:
            return Outcome(f"the swap that was interrupted would be completed: `{self.command.line}`")
        refuse_no_shadow(self.declared, self.flow, known)
        at_work = {
            each.generation: each.version for each in state.statuses() if each.identity.flow == self.flow
        }
        rows: tuple[JsonObject, ...] = ()
        if known is not None:
            rows = (
                _row("at work", at_work.get(known.current, "?"), known.current, "kept for a rollback"),
                _row("shadow", self.declared.version(self.flow), known.building, "takes its place"),
                *_forgotten(known),
            )
        return Outcome(
            f"the shadow would take the place of the version at work, from where that one stands in the log; "
            f"{self.comparison.gate}: `{self.command.line}`",
            rows,
        )


@dataclass(frozen=True)
class FlowRollback(BackgroundAction):
    """The version before the last swap takes its place again; the pipeline has to be stopped."""

    declared: DeclaredPipeline
    flow: str

    @property
    def command(self) -> Command:
        pipeline, module = self.declared.name, self.declared.module
        words = ("rollback", pipeline, self.flow, f"--module={module}")
        return replacing("flow.rollback", pipeline, self.flow, words)

    def check(self, settings: Settings) -> Outcome:
        _, known = _stopped(settings, self.declared, self.flow, "rollback")
        if known is not None and known.swapping:
            return Outcome(f"the rollback that was interrupted would be completed: `{self.command.line}`")
        label, rows = f"{self.declared.name}.{self.flow}", tuple[JsonObject, ...]()
        if known is not None:
            self._refuse_no_former(label, known)
            rows = (
                _row("at work", _version(known.current_made_by), known.current, "kept for another rollback"),
                _row("former", _version(known.former_made_by), known.former, "takes its place again"),
            )
        return Outcome(f"the former version of {label} would be put back: `{self.command.line}`", rows)

    def _refuse_no_former(self, label: str, known: Generation) -> None:
        if known.building is not None:
            raise FlowError(f"flow {label} has a shadow or a rebuild under way", hint="discard it first")
        if known.former is None or not known.kept:
            raise FlowError(
                f"no former version of flow {label} is kept",
                hint="run the code of then in the shadow, and swap that in",
            )


def replacing(
    name: str, pipeline: str, flow: str, words: tuple[str, ...], *, prints_document: bool = False
) -> Command:
    """Return a command that holds the pipeline and the shadow, and is to end by itself."""
    shadow = shadow_of(pipeline, flow)
    claims = (pipeline, shadow, f"{shadow}.diff")
    subject = f"{pipeline}.{flow}"
    return Command(name, subject, words, claims, prints_document=prints_document, may_be_stopped=False)


def _stopped(
    settings: Settings, declared: DeclaredPipeline, flow: str, command: str
) -> tuple[PipelineState, Generation | None]:
    """The state of a pipeline of which nothing runs, and which no other command has begun to change."""
    declared.version(flow)
    state = PipelineState(settings, declared.name)
    state.refuse_running()
    state.refuse_shadow_running(flow)
    state.refuse_half_done(flow, command)
    return state, state.generation(flow)


def _row(which: str, version: str, generation: int | None, then: str) -> JsonObject:
    return {"which": which, "version": version, "generation": generation, "then": then}


def _version(made_by: str) -> str:
    return made_by.partition(" ")[0] or "?"


def _forgotten(known: Generation) -> tuple[JsonObject, ...]:
    if known.former is None or not known.kept:
        return ()
    return (_row("former", _version(known.former_made_by), known.former, "is removed"),)
