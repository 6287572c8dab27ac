"""A pipeline as a module of the console declares it: what may be started, shadowed and swapped."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Self

from penstock.errors import SettingsError
from penstock.pipeline import Pipeline


@dataclass(frozen=True)
class DeclaredPipeline:
    """`module` as the command line takes it; `flows` are their versions by their names."""

    module: str
    name: str
    flows: Mapping[str, str] = field(default_factory=dict)

    def version(self, flow: str) -> str:
        """Return the version of a flow, or say which flows there are."""
        if flow not in self.flows:
            raise SettingsError(
                f"pipeline {self.name!r} of {self.module} has no flow {flow[:50]!r}",
                hint=f"it has {', '.join(self.flows) or 'none'}",
            )
        return self.flows[flow]


@dataclass(frozen=True)
class DeclaredPipelines:
    """The pipelines of all modules that the console was given; no other module is ever imported."""

    every: tuple[DeclaredPipeline, ...] = ()

    @classmethod
    def of(cls, modules: Sequence[str], loaded: Sequence[ModuleType]) -> Self:
        """Return those of modules, by how each was named."""
        return cls(
            tuple(
                DeclaredPipeline(name, each.name, {key: flow.version for key, flow in each.flows.items()})
                for name, module in zip(modules, loaded, strict=True)
                for each in {id(value): value for value in vars(module).values()}.values()
                if isinstance(each, Pipeline)
            )
        )

    def find(self, pipeline: str, module: str | None) -> DeclaredPipeline:
        """Return a pipeline of a module; of the only one that declares it, if no module is named."""
        found = [each for each in self.every if each.name == pipeline and module in (None, each.module)]
        if len(found) == 1:
            return found[0]
        if found:
            names = ", ".join(each.module for each in found)
            raise SettingsError(
                f"pipeline {pipeline!r} is declared by several modules", hint=f"name one of {names}"
            )
        where = f"module {module[:100]!r}" if module else "no module of this console"
        verb = "declares no" if module else "declares a"
        raise SettingsError(
            f"{where} {verb} pipeline {pipeline[:100]!r}",
            hint="start the console with its module: `penstock console -m shop.py`",
        )
