"""The services that experiments run on: those that are configured, or a local platform for the meantime."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from penstock.control.run_registry import RunRegistry
from penstock.lab.manifest import folder_of
from penstock.lab.users import Users
from penstock.local import Platform, services_of
from penstock.settings import Settings

_KAFKA = "bootstrap.servers"
_NAMES = {"kafka": "Kafka", "postgres": "PostgreSQL", "redis": "Redis"}
Report = Callable[[str], None]


@contextmanager
def services(settings: Settings, report: Report) -> Iterator[Settings]:
    """Yield settings whose services run; what had to be started is stopped, unless somebody else uses it.

    A broker that is configured elsewhere is used as it is.
    """
    platform = Platform(settings.data, services=services_of(settings.data))
    if not _is_wanted(settings, platform):
        yield settings
        return
    begun = _down(platform)
    with Users(folder_of(settings) / "users") as users:
        try:
            if begun:
                report(f"{_wanting(begun)}: starting {' and '.join(map(_article, begun))} in {platform.data}")
            platform.up(report=report)
            users.join()  # the folder is the platform's by now
            if again := _down(platform):  # whoever began them has stopped them meanwhile
                begun = (*begun, *(each for each in again if each not in begun))
                platform.up(report=report)
            yield Settings.load()
        finally:
            if begun:
                _end(platform, begun, users, report)


def _is_wanted(settings: Settings, platform: Platform) -> bool:
    """Whether the broker is to be a local one: none is configured, or the one of this folder is down."""
    local = Settings.load(platform.data, {"PENSTOCK_DATA": str(platform.data)})
    return _KAFKA not in settings.kafka or settings.kafka.get(_KAFKA) == local.kafka.get(_KAFKA)


def _down(platform: Platform) -> tuple[str, ...]:
    """The services of which nothing runs."""
    states = {name: replace(platform, services=(name,)).status() for name in platform.services}
    return tuple(name for name, found in states.items() if all(each.state != "running" for each in found))


def _wanting(services: Sequence[str]) -> str:
    return "no broker is running" if "kafka" in services else "not all services are running"


def _article(service: str) -> str:
    return f"a {_NAMES.get(service, service)}"


def _end(platform: Platform, begun: Sequence[str], users: Users, report: Report) -> None:
    """Stop what was begun here, unless another lab or a pipeline uses it."""
    busy = RunRegistry(Settings(data=platform.data)).names()
    if busy or not users.is_last():
        user = f"pipeline {busy[0]}" if busy else "another lab"
        report(f"{' and '.join(begun)} go on, because {user} uses them: `penstock down` stops them")
        return
    replace(platform, services=tuple(begun)).down(report)
    others = tuple(each for each in platform.services if each not in begun)
    if others and not _down(replace(platform, services=others)):
        replace(platform, services=others).up()  # they run: it writes down again where
