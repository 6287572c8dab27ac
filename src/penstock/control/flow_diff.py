"""Compares what a flow has written with what its shadow has, and what of both is asked for."""

from dataclasses import dataclass

from penstock.control.action import Outcome
from penstock.control.background import BackgroundAction
from penstock.control.command import Command
from penstock.control.declared_pipeline import DeclaredPipeline
from penstock.control.flow_shadow import refuse_other_version
from penstock.control.pipeline_state import PipelineState
from penstock.control.run_registry import shadow_of
from penstock.errors import FlowError, SettingsError
from penstock.pipeline.generation import Generation
from penstock.settings import Settings

_SECONDS = 4 * 3600.0
_EXAMPLES, _MOST_COLUMNS = 50, 100


@dataclass(frozen=True)
class Comparison:
    """How two versions are compared: the gate, the columns of the key, and those that are left out."""

    at_most: int | None = None
    by: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.at_most is not None and not 0 <= self.at_most < 10**15:
            raise SettingsError(f"at most is {self.at_most}, expected 0 or more")
        for name, columns in (("by", self.by), ("ignore", self.ignore)):
            if len(columns) > _MOST_COLUMNS or any(not 0 < len(each) < 200 for each in columns):
                raise SettingsError(f"{name} is not a list of columns")

    @property
    def words(self) -> tuple[str, ...]:
        """The options of the command line; a value is never taken for an option."""
        gate = () if self.at_most is None else (f"--at-most={self.at_most}",)
        return (*gate, *(f"--by={each}" for each in self.by), *(f"--ignore={each}" for each in self.ignore))

    @property
    def gate(self) -> str:
        return "no gate" if self.at_most is None else f"at most {self.at_most:,} keys may differ"


NO_GATE = Comparison()


@dataclass(frozen=True)
class FlowDiff(BackgroundAction):
    """Counts of keys that differ, with examples; both versions may run."""

    declared: DeclaredPipeline
    flow: str
    comparison: Comparison = NO_GATE

    @property
    def command(self) -> Command:
        pipeline, module = self.declared.name, self.declared.module
        options = (f"--module={module}", *self.comparison.words, f"--examples={_EXAMPLES}", "--json")
        return Command(
            "flow.diff",
            f"{pipeline}.{self.flow}",
            ("diff", pipeline, self.flow, *options),
            (f"{shadow_of(pipeline, self.flow)}.diff",),
            seconds=_SECONDS,
            prints_document=True,
        )

    def check(self, settings: Settings) -> Outcome:
        state = PipelineState(settings, self.declared.name)
        state.refuse_half_done(self.flow)
        refuse_no_shadow(self.declared, self.flow, state.generation(self.flow))
        return Outcome(f"both versions would be compared, {self.comparison.gate}: `{self.command.line}`")


def refuse_no_shadow(declared: DeclaredPipeline, flow: str, known: Generation | None) -> None:
    """Refuse what needs a shadow of the module's version, as far as it can be seen from here."""
    declared.version(flow)
    if known is None:
        return
    if known.building is None or not known.shadow:
        raise FlowError(
            f"flow {declared.name}.{flow} has no shadow", hint="run its new version in the shadow first"
        )
    refuse_other_version(declared, flow, known.made_by)
