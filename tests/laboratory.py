"""An experiment of the lab run without a browser, on the real platform."""

import time
from contextlib import contextmanager
from dataclasses import replace

from penstock.lab.laboratory import Laboratory
from penstock.lab.manifest import folder_of

_LONGEST = 1_200.0  # seconds: Spark may take minutes to start on a machine that others use, too


class Tried:
    """A running experiment: what it shows, and what is done to it."""

    def __init__(self, laboratory, name):
        self.laboratory, self.name = laboratory, name
        self.events, self._frame = [], {}

    @property
    def frame(self):
        """The newest frame; its events are collected."""
        self._frame = self.laboratory.frame()
        self.events += self._frame.get("events", [])
        return self._frame

    @property
    def figures(self):
        return self.frame.get("figures", {})

    def change(self, **values):
        self.laboratory.change(self.name, values)

    def press(self, button):
        self.laboratory.press(self.name, button)

    def until(self, reached, seconds=60.0):
        """Wait until the figures are as they should be, and return them."""
        deadline = time.monotonic() + seconds
        while True:
            frame = self.frame
            assert frame["state"] in ("running", "done"), frame
            figures = frame.get("figures", {})
            if figures and reached(figures):
                return figures
            assert time.monotonic() < deadline, figures
            time.sleep(0.05)

    def name_of(self, what):
        """The name of a topic or group of the run."""
        return f"lab.{self.name}.{self.frame['run']}.{what}"


@contextmanager
def tried(experiment, settings, **values):
    """Start an experiment, and end it."""
    patient = replace(experiment, seconds=_LONGEST)
    laboratory = Laboratory([patient], settings)
    laboratory.start(experiment.id, values)
    made = Tried(laboratory, experiment.id)
    try:
        yield made
    finally:
        laboratory.stop()
        assert laboratory.frame()["state"] in ("stopped", "done"), laboratory.frame()
        assert not (folder_of(settings) / f"{laboratory.frame()['run']}.json").exists()
