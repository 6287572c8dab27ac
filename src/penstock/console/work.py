"""What can be done with pipelines from here, and what was begun: their versions, and background commands."""

import time
from collections.abc import Mapping
from contextlib import suppress

import msgspec

from penstock.console.masking import HIDDEN, Masks
from penstock.control.command import CommandRun
from penstock.control.commands import Commands
from penstock.control.declared_pipeline import DeclaredPipelines
from penstock.control.run_registry import RunRegistry, shadow_of
from penstock.documents import Json, JsonObject, presentable
from penstock.identity import Identity
from penstock.pipeline.generation import Generation, generation_on_disk
from penstock.settings import Settings

_SHOWN = 30  # commands of a snapshot
_ROWS = ("examples", "differences")  # of a document: what quotes events


class Work:
    """The pipelines that modules declare or this machine runs, and the commands that were begun."""

    def __init__(self, settings: Settings, declared: DeclaredPipelines, masks: Masks) -> None:
        self._settings, self._declared, self._masks = settings, declared, masks
        self._registry, self._commands = RunRegistry(settings), Commands(settings)

    def document(self) -> JsonObject:
        """Return what a snapshot says of it."""
        runs = self._commands.all()
        return {
            "pipelines": self._pipelines(),
            "commands": [self._run(each) for each in runs[:_SHOWN]],
        }

    def command(self, id: str) -> JsonObject:
        """Return a command with the end of its log, and what it has printed as JSON."""
        run, folder = self._commands.run(id), self._commands.folder(id)
        log = HIDDEN if self._masks.rules else folder.log()
        found = folder.document() if run.command.prints_document and not run.is_running else None
        return self._run(run) | {"log": log, "document": presentable(self._shown(found))}

    def _pipelines(self) -> list[JsonObject]:
        held = set(self._registry.names())
        names = {each.name for each in self._declared.every}
        return [
            self._pipeline(name, held) for name in sorted(names | {each for each in held if "." not in each})
        ]

    def _pipeline(self, name: str, held: set[str]) -> JsonObject:
        declared = [each for each in self._declared.every if each.name == name]
        flows = sorted({flow for each in declared for flow in each.flows})
        process = self._registry.process(name)
        return {
            "name": name,
            "modules": {each.module: dict(each.flows) for each in declared},
            "process": None if process is None else process.pid,
            "held_by": None if process is None else self._registry.what(name),
            "flows": [self._versions(name, flow, held) for flow in flows],
        }

    def _versions(self, pipeline: str, flow: str, held: set[str]) -> JsonObject:
        identity, known = Identity.of(self._settings.namespace, pipeline, flow), None
        with suppress(msgspec.DecodeError):
            known = generation_on_disk(self._settings, identity)
        return {
            "name": flow,
            "label": identity.label,
            "is_shadow_running": shadow_of(pipeline, flow) in held,
            "versions": None if known is None else _versions(known),
        }

    def _run(self, run: CommandRun) -> JsonObject:
        hides = bool(self._masks.rules)
        found = {
            "id": run.id,
            "name": run.command.name,
            "subject": run.command.subject,
            "line": run.command.line,
            "may_be_stopped": run.command.may_be_stopped,
            "user": run.user,
            "began": run.began,
            "ended": run.ended,
            "seconds": round((run.ended or time.time()) - run.began, 1),
            "state": run.state,
            "code": run.code,
        }
        quoting = {"error": run.error, "hint": run.hint, "progress": run.progress}
        return found | {name: HIDDEN if hides and text else text for name, text in quoting.items()}

    def _shown(self, document: Json) -> Json:
        """Rows that two versions differ in are events: with masks, counts only are shown of them."""
        return _without_rows(document) if self._masks.rules else document


def _versions(known: Generation) -> JsonObject:
    """Which versions are there: at work, in the shadow, and kept for a rollback."""
    return {
        "at_work": known.current,
        "shadow": known.building if known.shadow else None,
        "rebuild": known.building if not known.shadow else None,
        "shadow_version": known.made_by.partition(" ")[0],
        "former": known.former if known.kept else None,
        "former_version": known.former_made_by.partition(" ")[0],
        "interrupted": known.command if known.swapping else "",
    }


def _without_rows(document: Json) -> Json:
    if isinstance(document, list):
        return [_without_rows(each) for each in document]
    if not isinstance(document, Mapping):
        return document
    return {
        name: [HIDDEN] if name in _ROWS and isinstance(each, list) and each else _without_rows(each)
        for name, each in document.items()
    }
