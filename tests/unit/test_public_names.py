"""The names a package lists are the names it has."""

import importlib
import inspect
import pkgutil

import pytest

import penstock.errors

PACKAGES = (
    "archive events inlets schemas.compatibility log registry local process targets targets.kafka "
    "targets.lake targets.opensearch targets.postgres targets.redis targets.search targets.webhook pipeline "
    "replica sourcing testing gateway"
)

LAZY = {"TYPE_CHECKING", "on_demand"}  # what a package has for names that are imported on demand


@pytest.mark.parametrize("name", PACKAGES.split())
def test_public_names_exist_and_are_sorted(name):
    package = importlib.import_module(f"penstock.{name}")
    assert sorted(set(package.__all__)) == sorted(package.__all__)
    for public in package.__all__:
        assert hasattr(package, public)
    imported = {
        each
        for each, value in vars(package).items()
        if not each.startswith("_") and (each in package.__all__ or not inspect.ismodule(value))
    }
    assert imported - LAZY == set(package.__all__)


@pytest.mark.parametrize("name", ["process", "pipeline"])
def test_names_that_are_imported_on_demand_are_the_public_ones_and_hide_no_module(name):
    package = importlib.import_module(f"penstock.{name}")
    assert dir(package) == sorted(package.__all__)
    modules = {each.name for each in pkgutil.iter_modules(package.__path__)}
    named = {each for each in package.__all__ if not inspect.ismodule(getattr(package, each))}
    assert modules & named == set()
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = package.nothing


def test_every_error_is_drawn_in_the_tree_and_has_its_own_id():
    errors = [
        value
        for value in vars(penstock.errors).values()
        if isinstance(value, type) and issubclass(value, penstock.errors.PenstockError)
    ]
    assert len({error.id for error in errors}) == len(errors)
    for error in errors:
        assert error.__name__ in penstock.errors.__doc__
