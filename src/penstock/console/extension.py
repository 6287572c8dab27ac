"""What a package above adds to the console: pages of the browser, files, and routes behind the same guard."""

import threading
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import asdict, dataclass
from typing import Protocol

from starlette.routing import BaseRoute

from penstock.console.security import ConsoleSecurity
from penstock.documents import JsonObject
from penstock.errors import ConfigurationError

Files = Mapping[str, tuple[bytes, str]]


@dataclass(frozen=True)
class Page:
    """A page in the navigation; its module is loaded when it is opened, and exports `make` and `one`.

    >>> Page("lab", "Lab", "l", "M3 3h5v5H3z", "/static/lab/lab.js").described()["key"]
    'l'

    `key` opens it after a `g`; `icon` is a path of SVG in a box of 24 by 24.
    """

    path: str
    title: str
    key: str
    icon: str
    module: str

    def __post_init__(self) -> None:
        if not self.module.startswith(f"/static/{self.path}/") or len(self.key) != 1:
            raise ConfigurationError(
                f"page {self.path!r} has the module {self.module!r} and the key {self.key!r}",
                hint=f"its files are under /static/{self.path}/, its key is one letter",
            )

    def described(self) -> JsonObject:
        """What the browser gets to know of it."""
        return asdict(self)


class Extension(Protocol):
    """A part of the console that another package brings."""

    @property
    def page(self) -> Page:
        """Its page."""

    @property
    def files(self) -> Files:
        """Its files by their names under /static/<path>/, each with its type."""

    def routes(self, security: ConsoleSecurity, stopping: threading.Event) -> Sequence[BaseRoute]:
        """Its routes, under /api/<path>; `stopping` is set when the console ends."""

    def running(self) -> AbstractAsyncContextManager[None]:
        """What goes on as long as the console is served."""
