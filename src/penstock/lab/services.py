"""The services that experiments run on: those that are configured, or a local platform for the meantime."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from penstock.local import Platform, services_of
from penstock.settings import Settings

_KAFKA = "bootstrap.servers"


@contextmanager
def services(settings: Settings, report: Callable[[str], None]) -> Iterator[Settings]:
    """Yield settings whose services run; what had to be started for them is stopped at the end.

    A broker that is configured elsewhere is used as it is.
    """
    platform = Platform(settings.data, services=services_of(settings.data))
    if not _is_wanted(settings, platform):
        yield settings
        return
    was_running = _is_running(platform)
    try:
        if not was_running:
            report(f"no broker is running: starting a Kafka and a PostgreSQL in {platform.data}")
        platform.up(report=report)
        yield Settings.load()
    finally:
        if not was_running:
            platform.down(report)


def _is_wanted(settings: Settings, platform: Platform) -> bool:
    """Whether the broker is to be a local one: none is configured, or the one of this folder is down."""
    local = Settings.load(platform.data, {"PENSTOCK_DATA": str(platform.data)})
    return _KAFKA not in settings.kafka or settings.kafka.get(_KAFKA) == local.kafka.get(_KAFKA)


def _is_running(platform: Platform) -> bool:
    return platform.is_there and any(each.state == "running" for each in platform.status())
