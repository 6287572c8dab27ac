"""The registry of a console that runs for weeks: opened once, and again after it has failed."""

import pytest

from penstock.console import decoding
from penstock.console.decoding import Decoding
from penstock.console.masking import Masks
from penstock.errors import LogError
from penstock.gateway import Declared
from penstock.settings import Settings


class Registry:
    """A registry, of which all are known."""

    opened: list["Registry"]

    def __init__(self, *_, **more):
        self.has_failed, self.is_closed = False, False
        self.opened.append(self)

    def close(self):
        self.is_closed = True
        raise LogError("its broker is away")


class Broker:
    def __init__(self, _):
        pass

    def exists(self, _):
        return True


@pytest.fixture
def opened(monkeypatch):
    monkeypatch.setattr(decoding, "Broker", Broker)
    monkeypatch.setattr(decoding, "Registry", Registry)
    Registry.opened = []
    return Registry.opened


def test_a_registry_that_has_failed_is_replaced(opened):
    decoding = Decoding(Settings(), Declared(), Masks())
    first = decoding.registry()
    assert decoding.registry() is first
    first.has_failed = True
    second = decoding.registry()
    assert second is not first
    assert decoding.registry() is second
    assert [each.is_closed for each in opened] == [True, False]
    decoding.close()
    assert second.is_closed
