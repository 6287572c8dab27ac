"""Controls of an experiment: sliders, choices and buttons; each checks what it is given."""

from dataclasses import dataclass

from penstock.documents import Json
from penstock.errors import ConfigurationError

Value = float | str


@dataclass(frozen=True)
class Slider:
    """A number between two others.

    >>> Slider("size", "Window", 10, 120, 10, 60, "s").checked(30)
    30.0

    `is_live`: it can be moved while the experiment runs; otherwise it counts from the next start on.
    """

    name: str
    label: str
    least: float
    most: float
    step: float
    value: float
    unit: str = ""
    is_live: bool = False
    kind: str = "slider"

    def __post_init__(self) -> None:
        if not (self.least <= self.value <= self.most and self.step > 0):
            raise ConfigurationError(
                f"slider {self.name!r} stands at {self.value}, expected a number between {self.least} and "
                f"{self.most}, and a step above 0"
            )

    def checked(self, given: Json) -> float:
        """Return the value if it is one of this slider's."""
        is_number = isinstance(given, int | float) and not isinstance(given, bool)
        if not is_number or not self.least <= given <= self.most:  # which NaN is not, either
            message = f"{self.name} is {str(given)[:50]!r}, expected {self.least} to {self.most}"
            raise ConfigurationError(message, hint="move the slider")
        return float(given)


@dataclass(frozen=True)
class Choice:
    """One of a few words.

    >>> Choice("kind", "Windows", ("tumbling", "hopping"), "tumbling").checked("hopping")
    'hopping'
    """

    name: str
    label: str
    options: tuple[str, ...]
    value: str
    is_live: bool = False
    kind: str = "choice"

    def __post_init__(self) -> None:
        self.checked(self.value)

    def checked(self, given: Json) -> str:
        """Return the value if it is one of the options."""
        if given not in self.options:
            message = f"{self.name} is {str(given)[:50]!r}, expected one of {', '.join(self.options)}"
            raise ConfigurationError(message, hint="choose from the list")
        return str(given)


@dataclass(frozen=True)
class Button:
    """Something that is done to a running experiment: a kill, a seek, a change of a row."""

    name: str
    label: str
    is_danger: bool = False
    kind: str = "button"


Control = Slider | Choice | Button
