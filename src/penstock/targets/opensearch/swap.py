"""A rebuilt index in the place of another: one request moves the alias and removes the old one."""

from dataclasses import replace

import msgspec

from penstock.documents import JsonObject
from penstock.errors import TargetError
from penstock.identity import flow_of
from penstock.log.ledger import Entry
from penstock.targets.opensearch.client import Client, path_of
from penstock.targets.opensearch.indices import Generation, find
from penstock.targets.opensearch.ledger import notes


def swap(client: Client, name: str, rebuilt: str) -> None:
    """Make what was rebuilt the live index; broken off at any point, it is completed by another call."""
    before, after = find(client, name), find(client, rebuilt)
    if after is None:
        if before is None or not before.index.startswith(f"{rebuilt}-"):
            raise TargetError(f"nothing was rebuilt as {rebuilt!r}", hint="run the flow into it, then swap")
        return  # it is done
    actions: list[JsonObject] = [
        {"add": {"index": after.index, "alias": name}},
        {"remove": {"index": after.index, "alias": rebuilt}},
    ]
    if before is not None:
        _shut_out(client, before, after)
        actions += [{"remove_index": {"index": each}} for each in (before.index, before.ledger)]
    client.need("POST", "_aliases", {"actions": actions})


def _shut_out(client: Client, before: Generation, after: Generation) -> None:
    """Raise the epochs of the rebuilt index over those of the live one's writers, who may be alive still."""
    old, new = notes(client, before), notes(client, after)
    written = set(map(_flow, new))
    lost = sorted(
        each
        for each, held in old.items()
        if _flow(each) not in written and Entry.from_json(held.note.entry).batch
    )
    if lost:
        raise TargetError(
            f"{before.index} also holds what lane {lost[0]!r} has written, and {after.index} does not",
            hint="give each flow an index of its own",
        )
    highest = max(
        (Entry.from_json(each.note.entry).epoch for each in (*old.values(), *new.values())), default=0
    )
    for id, held in (old | new).items():
        entry = replace(Entry.from_json(held.note.entry), epoch=highest + 1)
        note = msgspec.structs.replace(held.note, entry=entry.to_json().decode())
        client.need("PUT", path_of(after.ledger, "_doc", id), msgspec.to_builtins(note))


def _flow(lane: str) -> str:
    """The flow that a lane is of, by the name of its document."""
    return flow_of(lane.rpartition(" ")[0])
