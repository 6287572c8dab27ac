"""What the gateway serves: the topics, views, webhooks and routes that modules declare, and nothing else."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, Self, TypeVar

from starlette.routing import BaseRoute

from penstock.errors import SettingsError
from penstock.gateway.refusal import Refusal
from penstock.gateway.view import View
from penstock.gateway.webhook import SignedWebhook
from penstock.log import Topic
from penstock.pipeline import Pipeline
from penstock.settings import Settings
from penstock.targets import PostgresTable

ROUTES = "gateway_routes"
N = TypeVar("N", Topic[Any], View, SignedWebhook)
Routes = Sequence[BaseRoute] | Callable[[Settings], Sequence[BaseRoute]]


@dataclass(frozen=True)
class Declared:
    """Everything that is served, by name; `written` has the topics that flows write, and by which flow."""

    topics: dict[str, Topic[Any]] = field(default_factory=dict)
    written: dict[str, str] = field(default_factory=dict)
    views: dict[str, View] = field(default_factory=dict)
    webhooks: dict[str, SignedWebhook] = field(default_factory=dict)
    routes: tuple[Routes, ...] = ()

    @classmethod
    def of(cls, modules: Iterable[ModuleType]) -> Self:
        """Return what stands in modules: topics, pipelines, views, webhooks and `gateway_routes`."""
        loaded = list(modules)
        values = [value for module in loaded for value in vars(module).values()]
        pipelines = [value for value in values if isinstance(value, Pipeline)]
        topics = [value for value in values if isinstance(value, Topic)]
        return cls(
            _by_name("topic", [*topics, *(topic for each in pipelines for topic in _topics(each))]),
            {name: label for each in pipelines for name, label in _written(each).items()},
            _views(pipelines, [value for value in values if isinstance(value, View)]),
            _by_name("webhook", [value for value in values if isinstance(value, SignedWebhook)]),
            tuple(getattr(module, ROUTES) for module in loaded if hasattr(module, ROUTES)),
        )

    def topic(self, name: str) -> Topic[Any]:
        """Return a topic, or say that it is not served."""
        if name not in self.topics:
            raise Refusal(
                404,
                "gateway.unknown-topic",
                f"there is no topic {name[:100]!r} here",
                hint="/openapi.json lists what is served",
            )
        return self.topics[name]

    def is_open(self, topic: Topic[Any]) -> bool:
        """Whether requests may write a topic: what flows and captures write is theirs."""
        return topic.name not in self.written and not topic.is_captured

    def own_routes(self, settings: Settings) -> list[BaseRoute]:
        """Return the routes that the modules bring, made with the settings where they are functions."""
        return [route for each in self.routes for route in _made(each, settings)]


def _topics(pipeline: Pipeline) -> list[Topic[Any]]:
    written = [topic for flow in pipeline.flows.values() for topic in flow.target.topics]
    return [*pipeline.topics.values(), *written]


def _written(pipeline: Pipeline) -> dict[str, str]:
    return {
        topic.name: f"{pipeline.name}.{name}"
        for name, flow in pipeline.flows.items()
        for topic in flow.target.topics
    }


def _views(pipelines: Iterable[Pipeline], declared: Iterable[View]) -> dict[str, View]:
    """The views that are declared, and the tables that flows write beside them."""
    named = list(declared)
    known = {view.table.name for view in named}
    written = [flow.writes for each in pipelines for flow in each.flows.values()]
    tables = [each for each in written if isinstance(each, PostgresTable) and each.name not in known]
    return _by_name("view", [*(View(each) for each in tables), *named])


def _by_name(kind: str, named: Iterable[N]) -> dict[str, N]:
    found: dict[str, N] = {}
    for each in named:
        if found.setdefault(each.name, each) != each:
            raise SettingsError(
                f"{kind} {each.name!r} is declared twice, and not alike", hint="declare it once"
            )
    return found


def _made(routes: Routes, settings: Settings) -> Sequence[BaseRoute]:
    found = routes(settings) if callable(routes) else routes
    if not isinstance(found, Sequence) or not all(isinstance(each, BaseRoute) for each in found):
        raise SettingsError(
            f"{ROUTES} is {type(found).__name__}, expected a list of Starlette's routes",
            hint="from starlette.routing import Route",
        )
    return found
