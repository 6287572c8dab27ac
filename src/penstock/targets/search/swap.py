"""A rebuilt index in the place of another: its generation is moved in, then the pointer is replaced."""

import shutil
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from penstock.errors import SinkError, TargetError
from penstock.identity import flow_of
from penstock.log.ledger import Entry
from penstock.targets.search.engine import asking, open_index
from penstock.targets.search.folder import IndexFolder, Pointer, describe, sync_folder
from penstock.targets.search.ledger import entries, put_entry

_HEAP = 15 * 1024 * 1024  # bytes, the least that there is


def swap(live: IndexFolder, rebuilt: IndexFolder, wait: timedelta) -> None:
    """Make what was rebuilt the live index; broken off at any point, it is completed by another call."""
    live.path.mkdir(parents=True, exist_ok=True)
    lock = live.locked("a swap", wait)
    try:
        if rebuilt.pointer() is not None:
            _move_in(live, rebuilt, wait)
        elif not _is_done(live, rebuilt):
            raise TargetError(
                f"nothing was rebuilt at {rebuilt.path}", hint="add --discard to rebuild once more"
            )
        live.remove_others()
        if rebuilt.path.exists():
            shutil.rmtree(rebuilt.path)
    finally:
        lock.release()


def _move_in(live: IndexFolder, rebuilt: IndexFolder, wait: timedelta) -> None:
    pointer = rebuilt.pointer()
    if pointer is None:
        return
    moved = live.generation(pointer.generation)
    lock = rebuilt.locked("a swap", wait)
    try:
        if not moved.exists():
            before = {}
            with suppress(SinkError):  # a live index that can't be opened has no ledger to carry along
                before = _entries(live)
            _refuse_to_forget(before, _entries(rebuilt), live)
            _shut_out(rebuilt.current(), before)
            moved.parent.mkdir(exist_ok=True)
            rebuilt.current().rename(moved)
            sync_folder(moved.parent)
        live.point(Pointer(pointer.generation, swapped_from=str(rebuilt.path)))
        (rebuilt.path / "current").unlink()
    finally:
        lock.release()


def _entries(folder: IndexFolder) -> dict[str, Entry]:
    if folder.pointer() is None:
        return {}
    with asking("open"):
        return entries(open_index(folder.current(), describe(folder.current())))


def _refuse_to_forget(before: dict[str, Entry], after: dict[str, Entry], live: IndexFolder) -> None:
    """Rows of a flow that has not written what was rebuilt would be gone."""
    written = {flow_of(sink) for sink in after}
    lost = sorted(sink for sink, entry in before.items() if flow_of(sink) not in written and entry.batch)
    if lost:
        raise TargetError(
            f"{live.path} also holds what sink {lost[0]!r} has written, and the rebuilt index does not",
            hint="give each flow an index of its own",
        )


def _shut_out(generation: Path, before: dict[str, Entry]) -> None:
    """Raise the epochs of the rebuilt index over those of the live one's writers, who may be alive still."""
    with asking("take the ledger over"):
        index = open_index(generation, describe(generation))
        writer = index.writer(_HEAP, num_threads=1)
        try:
            for sink, entry in (before | entries(index)).items():
                epoch = max(entry.epoch, before.get(sink, entry).epoch) + 1
                put_entry(writer, sink, replace(entry, epoch=epoch))
            writer.commit()
        finally:
            writer.wait_merging_threads()


def _is_done(live: IndexFolder, rebuilt: IndexFolder) -> bool:
    pointer = live.pointer()
    return pointer is not None and pointer.swapped_from == str(rebuilt.path)
