"""An experiment: a question, its controls, what to watch, and the function that runs it for real."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from penstock.documents import Json
from penstock.errors import ConfigurationError
from penstock.lab.control import Button, Control, Value

if TYPE_CHECKING:
    from penstock.lab.run import Run


@dataclass(frozen=True)
class Experiment:
    """What can be tried; described first, run by `Laboratory`.

    `watch` are sentences of what to look at; `explained` are paragraphs in the field's words; `code` is what
    does it in one's own pipeline, and `page` the page of the docs that says more, like "windows.md".
    """

    id: str
    title: str
    question: str
    watch: tuple[str, ...]
    explained: tuple[str, ...]
    code: str
    page: str
    work: Callable[["Run"], None]
    controls: tuple[Control, ...] = ()
    seconds: float = 180.0  # after which it ends by itself
    services: tuple[str, ...] = field(default=("kafka",))  # without which it can't run

    def __post_init__(self) -> None:
        names = [each.name for each in self.controls]
        if len(set(names)) < len(names):
            raise ConfigurationError(f"experiment {self.id!r} has two controls of one name: {names}")

    @property
    def buttons(self) -> frozenset[str]:
        """The names of its buttons."""
        return frozenset(each.name for each in self.controls if isinstance(each, Button))

    def values(self, given: Mapping[str, Json]) -> dict[str, Value]:
        """Return the values of all sliders and choices: those given, checked, and the usual ones."""
        known = {each.name: each for each in self.controls if not isinstance(each, Button)}
        unknown = sorted(set(given) - set(known))
        if unknown:
            raise ConfigurationError(
                f"experiment {self.id!r} has no control {unknown[0][:50]!r}",
                hint=f"it has {', '.join(known) or 'none'}",
            )
        return {
            name: each.checked(given[name]) if name in given else each.value for name, each in known.items()
        }
