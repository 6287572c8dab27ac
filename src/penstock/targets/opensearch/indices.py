"""Indexes behind aliases: readers use a target's name, which is an alias of the generation that is live."""

from dataclasses import dataclass

from penstock.documents import JsonObject
from penstock.errors import SinkError, TargetError
from penstock.targets.opensearch.client import Client, path_of, refused
from penstock.targets.opensearch.mapping import description_of, index_body
from penstock.targets.search.description import Description

_FIRST, _NOT_FOUND = "000001", 404


@dataclass(frozen=True)
class Generation:
    """An index on the server and its ledger.

    Both are written through aliases of their own: a request by an alias that is gone fails, where one by an
    index that is gone would make it anew.
    """

    index: str

    @property
    def writing(self) -> str:
        return f"{self.index}-write"

    @property
    def ledger(self) -> str:
        return f"{self.index}-ledger"

    @property
    def writing_ledger(self) -> str:
        return f"{self.index}-ledger-write"


def find(client: Client, name: str) -> Generation | None:
    """Return the generation that an alias stands for."""
    answer = client.ask("GET", f"_alias/{path_of(name)}")
    if not answer.ok and answer.status != _NOT_FOUND:
        raise refused("GET", name, answer)
    if not answer.ok:
        if client.ask("GET", path_of(name)).ok:
            raise TargetError(
                f"{name!r} is an index of its own, not an alias of Penstock's", hint="use another name"
            )
        return None
    found = list(answer.json())
    if len(found) != 1:
        raise TargetError(f"{name!r} is an alias of {', '.join(sorted(found))}", hint="use another name")
    return Generation(found[0])


def live(client: Client, name: str) -> Generation:
    """Return the generation that an alias stands for; there is one once a sink was opened."""
    found = find(client, name)
    if found is None:
        raise SinkError(f"OpenSearch has no index {name!r}", hint="open the sink, which makes it")
    return found


def prepare(client: Client, name: str, wanted: Description) -> Generation:
    """Make the index if it is missing; refuse one that was made for other rows."""
    found = find(client, name)
    if found is None:
        found = Generation(f"{name}-{_FIRST}")
        _make(client, found.ledger, {"mappings": {"dynamic": False}, "aliases": {found.writing_ledger: {}}})
        _make(client, found.index, index_body(wanted, (name, found.writing)))
    describe(client, found).check_same(wanted, name)
    return found


def describe(client: Client, generation: Generation) -> Description:
    """Return what a generation was made of."""
    answer = client.need("GET", f"{path_of(generation.index)}/_mapping")
    found = description_of(answer[generation.index]["mappings"])
    if found is None:
        raise TargetError(f"the index {generation.index!r} was not made by Penstock", hint="use another name")
    return found


def _make(client: Client, index: str, body: JsonObject) -> None:
    answer = client.ask("PUT", path_of(index), body)
    if not answer.ok and answer.error != "resource_already_exists_exception":
        raise refused("PUT", index, answer)
