"""The lab in a real browser, on the real platform: each experiment is run, steered, and compared.

With PENSTOCK_PICTURES=docs/pictures the screenshots are the pictures of docs/lab.md.
"""

import os
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from tests.browser import chromium
from tests.console import served

from penstock.console.server import Watched
from penstock.lab.catalogue import catalogue
from penstock.lab.control import Button, Slider
from penstock.lab.laboratory import Laboratory
from penstock.lab.site import LabSite
from penstock.log import Broker
from penstock.ops.collecting import collecting
from penstock.ops.doctor.probes import Probes

PATIENCE = 20_000  # milliseconds
EXPERIMENTS = {each.id: each for each in catalogue()}
TITLES = "all => all.map(each => each.lastElementChild.previousSibling.textContent)"
MOVED = "(each, value) => { each.value = value; each.dispatchEvent(new Event('input', {bubbles: true})); }"
SHOWN = "all => all.map(each => [each.dataset.figure, each.dataset.value])"
# The first figure that Spark has computed: until it has started there is little to see.
COMPUTED = {"windows": "counted", "joins": "matched", "recovery": "exactly_once_exact"}
MOVING = "() => [...document.querySelectorAll('[data-figure]')].some(each => Number(each.dataset.value) > 0)"


class Bench:
    """A page of the lab, and the laboratory behind it."""

    def __init__(self, page, address, laboratory, folder):
        self.page, self.address, self.laboratory, self.folder = page, address, laboratory, folder

    def open(self, path):
        self.page.goto("about:blank")
        self.page.goto(f"{self.address}/#/{path}")

    def start(self, name, **values):
        """Open an experiment's page, set its sliders, and press Start."""
        self.open(f"lab/{name}")
        self.page.wait_for_selector(".lab-stage > *", timeout=PATIENCE)
        for control, value in values.items():
            self.set(control, value)
        self.page.click("button:text-is('Start')")
        self.until("() => document.querySelector('.lab-clock').textContent.includes(' of ')", PATIENCE)

    def set(self, control, value):
        """Move a slider or make a choice, as a hand would."""
        self.page.eval_on_selector(f"#knob-{control}", MOVED, value)

    def until(self, condition, patience):
        self.page.wait_for_function(condition, timeout=patience)

    def press(self, button):
        self.page.click(f"[data-button='{button}']")

    def shown(self):
        """The figures of the page, by name."""
        return dict(self.page.eval_on_selector_all("[data-figure]", SHOWN))

    def picture(self, name):
        self.page.wait_for_timeout(300)
        self.page.screenshot(path=self.folder / f"{name}.png", full_page=True)

    def check_access(self):
        found = Axe().run(self.page)
        assert found.violations_count == 0, found.generate_report()

    def check_phone(self):
        self.page.set_viewport_size({"width": 390, "height": 844})
        self.page.wait_for_timeout(300)
        assert self.page.evaluate("document.documentElement.scrollWidth") <= 390
        self.page.set_viewport_size({"width": 1280, "height": 900})

    def stop(self):
        """Press Stop, and wait until the experiment has cleaned up."""
        self.page.click("button:text-is('Stop')")
        until(lambda: self.laboratory.frame()["state"] == "stopped", 90)
        self.until("() => document.querySelector('.panel [role=status]').textContent === 'stopped'", PATIENCE)


def until(reached, seconds):
    deadline = time.monotonic() + seconds
    while not reached():
        assert time.monotonic() < deadline
        time.sleep(0.1)


@contextmanager
def opened(settings, folder, experiments=None, **changes):
    """A lab in a browser in which nothing may go wrong."""
    errors = []
    laboratory = Laboratory(experiments or catalogue(), settings)
    with collecting(settings) as collector, chromium() as browser:
        watched = Watched(collector.look, lambda: (collector.look(), Probes()))
        with served(settings, watched, extensions=(LabSite(laboratory),), **changes) as address:
            page = browser.new_page(viewport={"width": 1280, "height": 900})
            page.on("pageerror", lambda error: errors.append(str(error)))
            page.on("console", lambda said: errors.append(said.text) if said.type == "error" else None)
            yield Bench(page, address, laboratory, folder)
            page.goto("about:blank")
    assert errors == []


@pytest.fixture
def folder(tmp_path):
    return Path(os.environ.get("PENSTOCK_PICTURES", tmp_path))


@pytest.fixture
def lab(settings, folder):
    with opened(settings, folder) as made:
        yield made


def same(figure, shown):
    """Whether a text of the page is a figure of the frame."""
    if figure is None:
        return shown == ""
    if isinstance(figure, bool):
        return shown == str(figure).lower()
    return float(shown) == figure if isinstance(figure, int | float) else shown == str(figure)


def compare(lab):
    """What the page shows is what the laboratory says, when it stands still."""
    figures, shown = lab.laboratory.frame()["figures"], lab.shown()
    assert shown
    wrong = {name: each for name, each in shown.items() if not same(figures.get(name), each)}
    assert wrong == {}, {name: figures.get(name) for name in wrong}


@pytest.mark.timeout(120)
def test_the_lab_is_found_and_shows_every_experiment(lab):
    lab.open("")
    lab.page.wait_for_selector("a[href='#/lab']", timeout=PATIENCE)
    lab.page.keyboard.press("g")
    lab.page.keyboard.press("l")
    lab.page.wait_for_selector(".lab-card", timeout=PATIENCE)
    titles = lab.page.eval_on_selector_all(".lab-card h2", TITLES)
    assert titles == [each.title for each in EXPERIMENTS.values()]
    lab.until("() => document.getElementById('notice').hidden", PATIENCE)
    lab.picture("lab")
    lab.check_access()
    lab.check_phone()
    lab.page.evaluate("document.documentElement.dataset.theme = 'dark'")
    lab.check_access()


@pytest.mark.timeout(120)
def test_a_read_only_lab_has_nothing_to_press(settings, folder):
    with opened(settings, folder, is_read_only=True) as lab:
        lab.open("lab/consumers")
        lab.page.wait_for_selector(".lab-stage > *", timeout=PATIENCE)
        lab.page.wait_for_selector("text=This lab is read-only", timeout=PATIENCE)
        lab.page.wait_for_timeout(500)
        enabled = "all => all.filter(each => !each.disabled).map(each => each.innerText)"
        assert lab.page.eval_on_selector_all("#main button", enabled) == []


@pytest.mark.timeout(150)
def test_an_experiment_is_run_and_steered(lab, settings):
    lab.start("consumers", events=20_000, rate=200)
    lab.until(MOVING, 60_000)
    lab.set("slow", 10_000)
    until(lambda: lab.laboratory.frame()["values"]["slow"] == 10_000, 10)
    lab.press("end")
    lab.page.wait_for_selector("text=the slow group seeks to the end", timeout=PATIENCE)
    lab.stop()
    compare(lab)
    assert not [name for name in Broker(settings).topics() if name.startswith("lab.consumers.")]


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_experiment_shows_what_is(lab, settings, name):
    experiment = EXPERIMENTS[name]
    lab.start(name)
    lab.until(MOVING, 180_000)
    if name in COMPUTED:
        until(lambda: lab.laboratory.frame()["figures"].get(COMPUTED[name], 0) > 0, 180)
    move_live_sliders(lab, experiment)
    for button in [each for each in experiment.controls if isinstance(each, Button)]:
        lab.page.wait_for_timeout(4_000)
        lab.press(button.name)
    lab.page.wait_for_timeout(15_000)
    if name == "recovery":
        until(lambda: lab.laboratory.frame()["figures"]["lives"][-1]["first"] is not None, 180)
        lab.page.wait_for_timeout(5_000)
    assert lab.laboratory.frame()["state"] in ("running", "done"), lab.laboratory.frame()
    lab.picture(f"lab-{name}")
    lab.check_access()
    lab.check_phone()
    lab.page.evaluate("document.documentElement.dataset.theme = 'dark'")
    lab.picture(f"lab-{name}-dark")
    lab.check_access()
    lab.stop()
    compare(lab)
    assert not [topic for topic in Broker(settings).topics() if topic.startswith(f"lab.{name}.")]


def move_live_sliders(lab, experiment):
    """Each live slider is moved a step, and the run has its new value."""
    for each in experiment.controls:
        if isinstance(each, Slider) and each.is_live:
            value = each.value + each.step if each.value + each.step <= each.most else each.value - each.step
            lab.set(each.name, value)
            until(lambda each=each, value=value: lab.laboratory.frame()["values"][each.name] == value, 15)
