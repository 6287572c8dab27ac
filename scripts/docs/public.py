"""The public names of the packages, as their sources say: nothing is imported."""

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from scripts.docs.pages import ROOT

SOURCE = ROOT / "src"
# Modules without a list of their own, whose public names are those without an underscore.
MODULES = (
    "penstock.errors",
    "penstock.lab.control",
    "penstock.lab.experiment",
    "penstock.lab.laboratory",
    "penstock.lab.run",
    "penstock.process.dedup",
    "penstock.process.lookup",
    "penstock.process.sketches",
    "penstock.process.windows.agg",
    "penstock.settings",
    "penstock.sourcing.columns",
    "penstock.sourcing.folding",
    "penstock.sourcing.totals",
    "penstock.sourcing.view",
    "penstock.testing.lane_contract",
    "penstock.testing.sink_contract",
    "penstock.testing.upsert_contract",
)
_INSIDE = ("penstock.cli", "penstock.console", "penstock.control")


@dataclass(frozen=True)
class Package:
    """A package or module, its docstring and its public names."""

    name: str
    docstring: str
    names: tuple[str, ...]
    homes: Mapping[str, str]  # where a name that a module of the package is called by, too, is defined

    @property
    def page(self) -> str:
        return f"reference/{self.name}.md"


@cache
def packages() -> tuple[Package, ...]:
    """All that have public names, sorted; applications are to be copied, but for their frame."""
    return tuple(sorted(_found(), key=lambda each: each.name))


def _found() -> list[Package]:
    found = [_module(name) for name in MODULES]
    for path in sorted((SOURCE / "penstock").rglob("__init__.py")):
        name = ".".join(path.parent.relative_to(SOURCE).parts)
        if name.startswith(_INSIDE) or (name.startswith("penstock.apps") and name != "penstock.apps.demo"):
            continue
        tree = ast.parse(path.read_text())
        listed = _listed(tree)
        if listed:
            names = tuple(each for each in listed if each not in _modules(tree, name))
            homes = {each: home for each, home in _homes(tree).items() if home == f"{name}.{each}"}
            found.append(Package(name, ast.get_docstring(tree) or "", names, homes))
    return [each for each in found if each.names]


def _modules(tree: ast.Module, package: str) -> set[str]:
    """The names of a package that are modules of it: `from penstock.process import joins`."""
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module == package]
    return {alias.name for node in imports for alias in node.names}


def _homes(tree: ast.Module) -> dict[str, str]:
    """The modules that a package's names are imported from."""
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module]
    return {alias.asname or alias.name: str(node.module) for node in imports for alias in node.names}


def _listed(tree: ast.Module) -> list[str]:
    for node in tree.body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
            return sorted(ast.literal_eval(node.value), key=str.lower)
    return []


def _module(name: str) -> Package:
    tree = ast.parse(SOURCE.joinpath(*name.split(".")).with_suffix(".py").read_text())
    names = _listed(tree) or [
        node.name
        for node in tree.body
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and not node.name.startswith("_")
    ]
    return Package(name, ast.get_docstring(tree) or "", tuple(names), {})
