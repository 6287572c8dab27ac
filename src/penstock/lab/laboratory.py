"""The laboratory: experiments by name, one of which runs at a time."""

import logging
import threading
from collections.abc import Iterable, Mapping

from penstock.documents import Json, JsonObject, presentable
from penstock.errors import ConfigurationError, PenstockError
from penstock.lab.experiment import Experiment
from penstock.lab.run import Run
from penstock.lab.run_over import RunOver
from penstock.settings import Settings

_log = logging.getLogger("penstock")
_ENDED_WITHIN, _CLEANED_WITHIN = 15.0, 45.0  # seconds that an experiment has when it was stopped


class Laboratory:
    """Starts, steers and ends experiments; two at once would measure each other."""

    def __init__(self, experiments: Iterable[Experiment], settings: Settings) -> None:
        self.experiments = {each.id: each for each in experiments}
        self._settings, self._lock = settings, threading.Lock()
        self._run: Run | None = None
        self._thread: threading.Thread | None = None
        self._state, self._trouble = "idle", ""

    def start(self, name: str, given: Mapping[str, Json]) -> None:
        """Start an experiment; the one that runs is stopped first."""
        experiment = self._named(name)
        values = experiment.values(given)
        with self._lock:
            self._end()
            self._state, self._trouble = "running", ""
            self._run = run = Run(experiment, self._settings, values)
            self._thread = threading.Thread(target=self._work, args=(run,), name=f"lab-{name}", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """End what runs, and wait until it has cleaned up."""
        with self._lock:
            self._end()

    def change(self, name: str, given: Mapping[str, Json]) -> None:
        """Move controls of the running experiment, those that are live."""
        run = self._running(name)
        live = {each.name for each in run.experiment.controls if getattr(each, "is_live", False)}
        fixed = sorted(set(given) - live)
        if fixed:
            raise ConfigurationError(
                f"control {fixed[0][:50]!r} can't be moved while {name!r} runs", hint="start it again"
            )
        checked = run.experiment.values(given)
        run.change({each: checked[each] for each in given})

    def press(self, name: str, button: str) -> None:
        """Press a button of the running experiment."""
        run = self._running(name)
        if button not in run.experiment.buttons:
            raise ConfigurationError(f"experiment {name!r} has no button {button[:50]!r}")
        run.press(button)

    def frame(self) -> JsonObject:
        """Return what browsers are shown now; events are in one frame only."""
        run, state = self._run, self._state
        if run is not None and state == "running" and run.is_over:
            state = "stopping"
        head = {"state": state, "trouble": self._trouble, "experiment": None, "run": None}
        if run is None:
            return head
        shown = presentable(run.frame())
        return head | {"experiment": run.experiment.id, "run": run.id, **shown}

    def _named(self, name: str) -> Experiment:
        if name not in self.experiments:
            raise ConfigurationError(
                f"there is no experiment {name[:50]!r}", hint=f"there are {', '.join(self.experiments)}"
            )
        return self.experiments[name]

    def _running(self, name: str) -> Run:
        run = self._run
        if run is None or self._state != "running" or run.experiment.id != name:
            raise ConfigurationError(f"experiment {name[:50]!r} does not run", hint="start it first")
        return run

    def _end(self) -> None:
        if self._run is None or self._thread is None:
            return
        self._run.stop()
        self._thread.join(_ENDED_WITHIN)
        if self._thread.is_alive():  # perhaps it waits for a network: its processes need none to end
            self._run.children.end()
            self._thread.join(_CLEANED_WITHIN)
        if self._thread.is_alive():
            raise PenstockError(
                f"experiment {self._run.experiment.id!r} has not cleaned up within "
                f"{_ENDED_WITHIN + _CLEANED_WITHIN:.0f} s",
                hint=f"wait, or end the lab: the next one removes what {self._run.manifest.path} lists",
            )

    def _work(self, run: Run) -> None:
        """Run it; whatever it raises is shown, and it cleans up in any case."""
        try:
            try:
                _experiment(run)
                self._state = "done"
            finally:
                run.close()
        except RunOver:
            self._state = "over" if run.elapsed > run.experiment.seconds else "stopped"
        except PenstockError as error:
            self._fail(error.message + (f" → {error.hint}" if error.hint else ""))
            _log.warning("experiment %s: %s", run.experiment.id, self._trouble)
        except Exception as error:  # an experiment that fails must not end the lab
            _log.exception("experiment %s failed", run.experiment.id)
            self._fail(f"{type(error).__name__}: {error}")

    def _fail(self, trouble: str) -> None:
        self._state, self._trouble = "failed", trouble


def _experiment(run: Run) -> None:
    """What fails because the run is ended, such as a process that was killed, is no failure."""
    try:
        run.experiment.work(run)
    except Exception as error:
        if run.closing.is_set():
            raise RunOver from error
        raise
