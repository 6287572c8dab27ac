"""The docs as a site: its pages, what the reference lists, and how links are brought over."""

import ast
import doctest
import importlib
import inspect
import re
from itertools import pairwise
from pathlib import Path

import pytest
from scripts.docs import dialect, links, pages, reference
from scripts.docs.built import problems
from scripts.docs.links import Links
from scripts.docs.public import MODULES, SOURCE, packages

NAMES = [pytest.param(each, name, id=f"{each.name}.{name}") for each in packages() for name in each.names]


@pytest.mark.parametrize("module", [dialect, links, pages, reference], ids=lambda each: each.__name__)
def test_examples_of_what_makes_the_site(module):
    tried = doctest.testmod(module)
    assert tried.attempted
    assert not tried.failed


@pytest.mark.parametrize("package", packages(), ids=lambda each: each.name)
def test_the_page_of_a_package_lists_its_public_names_and_no_others(package):
    text = reference.pages()[package.page]
    listed = re.findall(rf"^::: {re.escape(package.name)}(?:\.\w+)?\.(\w+)$", text, re.MULTILINE)
    module = importlib.import_module(package.name)
    if package.name in MODULES and not hasattr(module, "__all__"):
        public = {
            name
            for name, value in vars(module).items()
            if not name.startswith("_") and getattr(value, "__module__", "") == package.name
        }
    else:
        public = {name for name in module.__all__ if not inspect.ismodule(getattr(module, name))}
    assert set(listed) == public
    assert len(listed) == len(set(listed))


@pytest.mark.parametrize(("package", "name"), NAMES)
def test_every_public_name_has_a_docstring_of_its_own(package, name):
    value = getattr(importlib.import_module(package.name), name)
    if inspect.isclass(value):
        assert vars(value)["__doc__"], f"{package.name}.{name} has no docstring"
        assert not vars(value)["__doc__"].startswith(f"{name}("), (
            f"{package.name}.{name} has only a signature"
        )
    elif inspect.isroutine(value):
        assert value.__doc__, f"{package.name}.{name} has no docstring"
    else:
        assert name in _described(), f'{package.name}.{name} has no """…""" below it'


def _described() -> set[str]:
    """Values of modules that have a docstring below them."""
    found = set()
    for path in SOURCE.rglob("*.py"):
        body = ast.parse(path.read_text()).body
        for node, below in pairwise(body):
            if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(below, ast.Expr):
                target = node.targets[0] if isinstance(node, ast.Assign) else node.target
                if isinstance(target, ast.Name) and isinstance(below.value, ast.Constant):
                    found.add(target.id)
    return found


def test_every_page_is_in_the_navigation():
    """A page that is missing there: add its line to `nav` in mkdocs.yml."""
    nav = (pages.ROOT / "mkdocs.yml").read_text().partition("\nnav:\n")[2]
    listed = set(re.findall(r"^ *- .*?([\w./-]+\.md)$", nav, re.MULTILINE))
    wanted = {pages.page_of(path) for path in pages.written()}
    assert {page for page in wanted if not str(page).startswith("decisions/")} == listed
    assert "decisions/" in nav
    assert "reference/" in nav


def test_every_module_that_the_docs_import_from_has_a_page():
    """A page that is missing: list its names in `__all__`, or the module in scripts/docs/public.py.

    Applications have none: they are to be copied.
    """
    known = {each.name for each in packages()} | {"penstock.process", "penstock.log.ledger"}
    for path in pages.written():
        for module in re.findall(
            r"^from (penstock[\w.]*) import", (pages.ROOT / path).read_text(), re.MULTILINE
        ):
            assert module in known or module.startswith("penstock.apps."), f"{path} imports from {module}"


def test_links_lead_to_pages_and_to_sources():
    found = Links()
    docs = "../../../../docs"
    text = f"[a]({docs}/joins.md#two-streams) ![b]({docs}/pictures/house.svg) [`c`](pipeline.py)"
    assert found.rewritten(text, "src/penstock/apps/ads/README.md") == (
        "[a](../joins.md#two-streams) ![b](../pictures/house.svg) "
        "[`c`](../code/src/penstock/apps/ads/pipeline.py.md)"
    )
    assert found.code == {"src/penstock/apps/ads/pipeline.py"}
    assert not found.broken


def test_a_link_to_nothing_is_named_and_one_in_code_is_none():
    found = Links()
    found.rewritten(
        "[a](nothing.md)\n```text\n[b](no.md)\n```\n`[c](no.md)`\n[d](https://example.org)", "docs/log.md"
    )
    assert found.broken == ["docs/log.md links to nothing.md: there is no such page"]
    assert found.external == {"https://example.org"}


def test_a_built_site_may_load_nothing_from_elsewhere_and_lead_nowhere(tmp_path: Path):
    (tmp_path / "a.html").write_text(
        '<h1 id="x"></h1><a href="b.html#y">b</a><a href="#x">x</a><a href="https://e.org">e</a>'
    )
    (tmp_path / "b.html").write_text('<script src="https://cdn.example.org/x.js"></script><img src="no.png">')
    assert problems(tmp_path) == [
        "a.html leads to b.html#y",
        "b.html loads https://cdn.example.org/x.js",
        "b.html lacks no.png",
    ]
