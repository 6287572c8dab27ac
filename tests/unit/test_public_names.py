"""The names a package lists are the names it has."""

import importlib
import inspect

import pytest

import penstock.errors

PACKAGES = (
    "events schemas schemas.compatibility log registry local process targets targets.kafka targets.postgres "
    "pipeline testing"
)


@pytest.mark.parametrize("name", PACKAGES.split())
def test_public_names_exist_and_are_sorted(name):
    package = importlib.import_module(f"penstock.{name}")
    assert sorted(set(package.__all__)) == sorted(package.__all__)
    for public in package.__all__:
        assert hasattr(package, public)
    imported = {
        each
        for each, value in vars(package).items()
        if not each.startswith("_") and not inspect.ismodule(value)
    }
    assert imported == set(package.__all__)


def test_every_error_is_drawn_in_the_tree_and_has_its_own_id():
    errors = [
        value
        for value in vars(penstock.errors).values()
        if isinstance(value, type) and issubclass(value, penstock.errors.PenstockError)
    ]
    assert len({error.id for error in errors}) == len(errors)
    for error in errors:
        assert error.__name__ in penstock.errors.__doc__
