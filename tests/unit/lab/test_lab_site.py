"""The lab over HTTP: what it shows, what it refuses, and one frame for all browsers."""

import time
from contextlib import contextmanager
from dataclasses import replace

import pytest
from starlette.testclient import TestClient, WebSocketDenialResponse
from tests.console import HERE, NOWHERE, client, csrf, security
from tests.observed_system import system

from penstock.console.server import Console, Watched
from penstock.errors import ConfigurationError
from penstock.lab.control import Button, Choice, Slider
from penstock.lab.experiment import Experiment
from penstock.lab.laboratory import Laboratory
from penstock.lab.site import PAGE, LabSite
from penstock.ops.doctor.probes import Probes

LIVE = "ws://127.0.0.1:9480/api/lab/live"
CONTROLS = (
    Slider("rate", "Rate", 1, 100, 1, 10, is_live=True),
    Choice("kind", "Kind", ("a", "b"), "a"),
    Button("kill", "Kill"),
)
START = {"experiment": "one", "values": {}}


def work(run):
    kills = 0
    while True:
        kills += run.pressed("kill")
        run.show(rate=run.value("rate"), kind=run.value("kind"), kills=kills)
        run.rest(0.02)


@contextmanager
def lab(**changes):
    """A client of a console with a lab of one experiment; the laboratory, too."""
    one = Experiment("one", "One", "Why?", ("Look.",), ("So.",), "code()", "log.md", work, CONTROLS)
    laboratory = Laboratory([one], NOWHERE)
    watched = Watched(system, lambda: (system(), Probes()))
    console = Console(NOWHERE, watched, security(**changes), (LabSite(laboratory),))
    with TestClient(console.application(), base_url=HERE, raise_server_exceptions=False) as made:
        yield made, laboratory


@pytest.fixture
def web():
    with lab() as (made, laboratory):
        made.headers.update(csrf(made))
        made.laboratory = laboratory
        yield made


def do(web, what, body):
    return web.post(f"/api/lab/{what}", json=body)


def until(reached, seconds=10.0):
    deadline = time.monotonic() + seconds
    while not reached():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_the_page_is_there_only_with_the_lab(web):
    (page,) = web.get("/api/session").json()["pages"]
    assert (page["path"], page["key"]) == ("lab", "l")
    for name in ("lab.js", "lab.css", "controls.js"):
        assert web.get(f"/static/lab/{name}").status_code == 200
    assert web.get("/static/lab/../site.py").status_code == 404


def test_a_console_without_the_lab_knows_nothing_of_it():
    with client() as web:
        assert web.get("/api/session").json()["pages"] == []
        for path in ("/api/lab/experiments", "/static/lab/lab.js"):
            assert web.get(path).status_code == 404


@pytest.mark.parametrize(
    ("key", "module"), [("l", "/static/app.js"), ("l", "https://a/b.js"), ("", PAGE.module)]
)
def test_a_page_has_its_files_in_its_own_folder(key, module):
    with pytest.raises(ConfigurationError, match="page 'lab'"):
        replace(PAGE, key=key, module=module)


def test_experiments_are_described(web):
    (found,) = web.get("/api/lab/experiments").json()["experiments"]
    assert (found["id"], found["question"], found["seconds"]) == ("one", "Why?", 180.0)
    assert [each["kind"] for each in found["controls"]] == ["slider", "choice", "button"]
    assert "work" not in found


def test_an_experiment_is_started_steered_and_stopped(web):
    assert do(web, "start", {"experiment": "one", "values": {"kind": "b"}}).status_code == 200
    assert do(web, "change", {"experiment": "one", "values": {"rate": 50}}).status_code == 200
    assert do(web, "press", {"experiment": "one", "button": "kill"}).status_code == 200
    wanted = {"rate": 50.0, "kind": "b", "kills": 1}
    until(lambda: web.laboratory.frame().get("figures") == wanted)
    assert do(web, "stop", {}).status_code == 200
    assert web.laboratory.frame()["state"] == "stopped"


def test_all_browsers_get_the_same_frames_and_events_once(web):
    with web.websocket_connect(LIVE) as one, web.websocket_connect(LIVE) as other:
        do(web, "start", START)
        frames = [[socket.receive_json() for _ in range(4)] for socket in (one, other)]
    assert frames[0][-1]["experiment"] == "one"
    assert any(each in frames[1] for each in frames[0])


def test_a_lab_that_ends_ends_its_experiment():
    with lab() as (web, laboratory):
        do_it = web.post("/api/lab/start", json=START, headers=csrf(web))
        assert do_it.status_code == 200
    assert laboratory.frame()["state"] == "stopped"


@pytest.mark.parametrize("what", ["start", "stop", "change", "press"])
def test_nobody_else_does_anything(web, what):
    for headers in ({"origin": "https://evil.example"}, {"x-penstock-csrf": ""}, {"host": "evil.example"}):
        answer = web.post(f"/api/lab/{what}", json=START, headers=headers)
        assert answer.status_code in (403, 421), answer.text
    assert web.get(f"/api/lab/{what}").status_code == 405
    assert web.laboratory.frame()["state"] == "idle"


def test_a_foreign_page_sees_nothing(web):
    with (
        pytest.raises(WebSocketDenialResponse) as refused,
        web.websocket_connect(LIVE, headers={"origin": "https://evil.example"}),
    ):
        pass
    assert refused.value.status_code == 403
    headers = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors", "sec-fetch-dest": "image"}
    assert web.get("/api/lab/experiments", headers=headers).status_code == 403


def test_a_token_guards_the_lab_too():
    with lab(token="correct horse battery") as (web, _):
        for path in ("/api/lab/experiments", "/static/lab/lab.js"):
            assert web.get(path).status_code == 401


def test_a_read_only_lab_shows_and_starts_nothing():
    with lab(is_read_only=True) as (web, laboratory):
        for what in ("start", "stop", "change", "press"):
            answer = web.post(f"/api/lab/{what}", json=START, headers=csrf(web))
            assert (answer.status_code, answer.json()["id"]) == (403, "console.read-only")
        assert web.get("/api/lab/experiments").status_code == 200
        with web.websocket_connect(LIVE) as socket:
            assert socket.receive_json()["state"] == "idle"
        assert laboratory.frame()["state"] == "idle"


@pytest.mark.parametrize(
    "body",
    [
        {"experiment": "two", "values": {}},
        {"experiment": "__class__", "values": {}},
        {"experiment": "one", "values": {"rat": 1}},
        {"experiment": "one", "values": {"kill": 1}},
        {"experiment": "one", "values": {"rate": "10"}},
        {"experiment": "one", "values": {"rate": True}},
        {"experiment": "one", "values": {"rate": 10**400}},
        {"experiment": "one", "values": {"rate": 0}},
        {"experiment": "one", "values": {"kind": ["a"]}},
        {"experiment": "one", "values": {"kind": "c"}},
        {"experiment": "one", "values": []},
        {"experiment": "one"},
        {"experiment": ["one"], "values": {}},
        {"experiment": "one", "values": {}, "more": 1},
        [],
        "one",
    ],
)
def test_what_is_not_there_or_wrong_starts_nothing(web, body):
    answer = do(web, "start", body)
    assert answer.status_code in (409, 422), answer.text
    assert answer.json()["message"]
    assert web.laboratory.frame()["state"] == "idle"


@pytest.mark.parametrize("body", [b"", b"{", b"\xff", b'{"a": NaN}', b'{"a": 1, "a": 2}', b"[" * 5_000])
def test_what_is_no_json_starts_nothing(web, body):
    assert web.post("/api/lab/start", content=body).status_code == 400


def test_a_body_has_a_limit(web):
    assert web.post("/api/lab/start", content=b"x" * 300_000).status_code == 413


def test_buttons_and_controls_that_are_not_there(web):
    assert do(web, "press", {"experiment": "one", "button": "kill"}).status_code == 409  # it does not run
    do(web, "start", START)
    for button in ("rate", "explode", "", 7, None):
        assert do(web, "press", {"experiment": "one", "button": button}).status_code in (409, 422)
    for values in ({"kind": "b"}, {"x": 1}, {"rate": 1000}, {"rate": None}):
        assert do(web, "change", {"experiment": "one", "values": values}).status_code == 409
    assert web.laboratory.frame()["values"] == {"rate": 10, "kind": "a"}
