"""POST /api/actions: an action is shown as a dry run, or carried out and written down."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import msgspec

from penstock.console.decoding import Decoding
from penstock.console.examination import Examination, apply_fix
from penstock.console.security import ConsoleSecurity
from penstock.control.action import Action, Outcome, carry_out
from penstock.control.background import BackgroundAction
from penstock.control.capture_pause import CapturePause
from penstock.control.command_stop import CommandStop
from penstock.control.declared_pipeline import DeclaredPipeline, DeclaredPipelines
from penstock.control.event_sending import EventSending
from penstock.control.flow_diff import Comparison, FlowDiff
from penstock.control.flow_shadow import FlowDiscard, FlowShadow
from penstock.control.flow_swap import FlowRollback, FlowSwap
from penstock.control.group_reset import GroupReset
from penstock.control.letters_redrive import LettersRedrive
from penstock.control.pipeline_start import PipelineStart
from penstock.control.pipeline_stop import PipelineStop
from penstock.control.replica_audit import ReplicaAudit
from penstock.control.schema_registration import SchemaRegistration
from penstock.documents import Json, JsonObject
from penstock.errors import ConfigurationError
from penstock.gateway.declared import Declared
from penstock.gateway.incoming import EventReader
from penstock.gateway.refusal import Refusal
from penstock.ops.doctor.declared import Declared as DeclaredToDoctor
from penstock.schemas import SchemaKind
from penstock.settings import Settings

Asked = Mapping[str, Json]
_FIX = "doctor.fix"
_AS_SEEN = ("pipeline.stop", "command.stop")  # beside those that begin a command


class Actions:
    """Makes actions of what the page asks for; what is not here can't be done from it."""

    def __init__(
        self,
        settings: Settings,
        security: ConsoleSecurity,
        declared: Declared,
        to_doctor: DeclaredToDoctor,
        decoding: Decoding,
        examination: Examination,
        pipelines: DeclaredPipelines,
    ) -> None:
        self._settings, self._security, self._declared = settings, security, declared
        self._to_doctor, self._decoding, self._examination = to_doctor, decoding, examination
        self._pipelines = pipelines
        self._known: dict[str, Callable[[Asked], Action]] = {
            "group.reset": _group_reset,
            "topic.redrive": self._redrive,
            "topic.send": self._sending,
            "schema.register": _registration,
            "capture.pause": lambda asked: CapturePause(_text(asked, "name"), paused=True),
            "capture.resume": lambda asked: CapturePause(_text(asked, "name"), paused=False),
            "pipeline.stop": lambda asked: PipelineStop(_text(asked, "name")),
            "command.stop": lambda asked: CommandStop(_text(asked, "id")),
        }
        self._begun: dict[str, Callable[[Asked, str], BackgroundAction]] = {
            "pipeline.start": lambda asked, user: PipelineStart(self._declares(asked), user=user),
            "flow.shadow": lambda asked, user: FlowShadow(
                *self._flow(asked), _flag(asked, "partial"), user=user
            ),
            "flow.discard": lambda asked, user: FlowDiscard(*self._flow(asked), user=user),
            "flow.diff": lambda asked, user: FlowDiff(*self._flow(asked), _comparison(asked), user=user),
            "flow.swap": lambda asked, user: FlowSwap(*self._flow(asked), _comparison(asked), user=user),
            "flow.rollback": lambda asked, user: FlowRollback(*self._flow(asked), user=user),
            "replica.audit": lambda asked, user: ReplicaAudit(
                _text(asked, "name"), _optional(asked, "connection"), _flag(asked, "repair"), user=user
            ),
        }

    def answer(self, asked: Json, user: str) -> JsonObject:
        """Return what the action comes to; unless it is a dry run, it is carried out."""
        if not isinstance(asked, dict) or not isinstance(asked.get("dry_run", True), bool):
            raise Refusal(400, "console.action", "expected an object with an action and dry_run")
        is_dry, name = bool(asked.get("dry_run", True)), _text(asked, "action")
        if not is_dry:
            self._security.check_writable()
        if name == _FIX:
            return asdict(self._fix(asked, is_dry=is_dry))
        if name in self._begun:
            return self._answer_as_seen(self._begun[name](asked, user), asked, user, is_dry=is_dry)
        if name not in self._known:
            raise Refusal(404, "console.action", f"there is no action {name[:50]!r}")
        action = self._known[name](asked)
        if name in _AS_SEEN:
            return self._answer_as_seen(action, asked, user, is_dry=is_dry)
        done = action.preview(self._settings) if is_dry else carry_out(action, self._settings, user)
        return asdict(done) | {"dry_run": is_dry}

    def _answer_as_seen(self, action: Action, asked: Asked, user: str, *, is_dry: bool) -> JsonObject:
        if is_dry:
            shown = action.preview(self._settings)
            return asdict(shown) | {"dry_run": True, "seen": _mark(shown)}
        seen = asked.get("seen")
        done = carry_out(_AsSeen(action, seen if isinstance(seen, str) else ""), self._settings, user)
        return asdict(done) | {"dry_run": False}

    def _declares(self, asked: Asked) -> DeclaredPipeline:
        """A pipeline of the console's own modules: a module that is named here is never imported."""
        return self._pipelines.find(_text(asked, "pipeline"), _optional(asked, "module"))

    def _flow(self, asked: Asked) -> tuple[DeclaredPipeline, str]:
        found, flow = self._declares(asked), _text(asked, "flow")
        found.version(flow)
        return found, flow

    def _redrive(self, asked: Asked) -> Action:
        topic = _text(asked, "topic")
        codec = self._decoding.codec(topic)
        return LettersRedrive(topic, codec.decode if codec else None)

    def _sending(self, asked: Asked) -> Action:
        name = _text(asked, "topic")
        topic = self._declared.topics.get(name)
        if topic is None or not self._declared.is_open(topic):
            raise Refusal(405, "console.closed", f"topic {name[:100]!r} can't be written from here")
        return EventSending(topic, EventReader(topic).read(asked.get("event")))

    def _fix(self, asked: Asked, *, is_dry: bool) -> Outcome:
        fix = self._examination.fix(_text(asked, "fix"), _text(asked, "subject"), anew=not is_dry)
        if is_dry:
            return Outcome(f"would run: {fix.command}")
        done = apply_fix(fix, self._settings, self._to_doctor)
        self._examination.forget()
        return Outcome(f"{done}: {fix.command}")


@dataclass(frozen=True)
class _AsSeen:
    """Does what the dry run has shown, and nothing else: the system may have changed since."""

    action: Action
    seen: str

    @property
    def name(self) -> str:
        return self.action.name

    @property
    def subject(self) -> str:
        return self.action.subject

    def preview(self, settings: Settings) -> Outcome:
        return self.action.preview(settings)

    def act(self, settings: Settings) -> Outcome:
        now = self.action.preview(settings)
        if _mark(now) != self.seen:
            raise StaleCheckError(
                f"it is not as it was when it was checked; now: {now.summary}", hint="check it again"
            )
        return self.action.act(settings)


class StaleCheckError(ConfigurationError):
    id = "console.stale"


def _mark(shown: Outcome) -> str:
    return hashlib.sha256(msgspec.json.encode(shown)).hexdigest()[:32]


def _group_reset(asked: Asked) -> Action:
    return GroupReset(_text(asked, "group"), _text(asked, "topic"), _text(asked, "to"))


def _registration(asked: Asked) -> Action:
    try:
        kind = SchemaKind(_text(asked, "type"))
    except ValueError:
        known = ", ".join(each.value for each in SchemaKind)
        raise Refusal(422, "console.schema-type", "no such type of schema", hint=f"use {known}") from None
    return SchemaRegistration(_text(asked, "subject"), kind, _text(asked, "text"))


def _comparison(asked: Asked) -> Comparison:
    at_most = asked.get("at_most")
    if at_most is not None and (not isinstance(at_most, int) or isinstance(at_most, bool)):
        raise Refusal(422, "console.action", f"at_most is {str(at_most)[:50]!r}, expected a whole number")
    return Comparison(at_most, _columns(asked, "by"), _columns(asked, "ignore"))


def _columns(asked: Asked, name: str) -> tuple[str, ...]:
    found = asked.get(name, [])
    if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
        raise Refusal(422, "console.action", f"{name} is {str(found)[:50]!r}, expected a list of columns")
    return tuple(found)


def _flag(asked: Asked, name: str) -> bool:
    found = asked.get(name, False)
    if not isinstance(found, bool):
        raise Refusal(422, "console.action", f"{name} is {str(found)[:50]!r}, expected true or false")
    return found


def _optional(asked: Asked, name: str) -> str | None:
    return None if asked.get(name) is None else _text(asked, name)


def _text(asked: Mapping[str, Any], name: str) -> str:
    found = asked.get(name)
    if not isinstance(found, str) or not found:
        raise Refusal(422, "console.action", f"{name} is {str(found)[:50]!r}, expected a text")
    return found
