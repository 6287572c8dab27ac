"""Who may use the console, and what a page of a stranger can't do with it."""

import json

import pytest
from starlette.testclient import WebSocketDenialResponse
from tests.console import HERE, LIVE, TAIL, client, csrf, security, served
from tests.observed_system import system
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from penstock.console.security import ConsoleSecurity
from penstock.console.server import Watched
from penstock.errors import SettingsError
from penstock.ops.doctor.probes import Probes
from penstock.settings import Settings

TOKEN = "correct horse battery"
RESET = {"action": "group.reset", "dry_run": True, "group": "g", "topic": "t", "to": "end"}
PATHS = ("/", "/static/app.js", "/api/session", "/api/topic?name=orders", "/api/doctor", "/api/audit")


@pytest.fixture
def web():
    with client() as made:
        yield made


@pytest.mark.parametrize("path", PATHS)
def test_every_path_wants_the_token(path):
    with client(token=TOKEN) as web:
        for headers in ({}, {"authorization": "Bearer x"}, {"authorization": "Basic OnRva2Vu"}):
            answer = web.get(path, headers=headers)
            assert (answer.status_code, answer.json()["id"]) == (401, "console.token")
            assert answer.headers["www-authenticate"].startswith("Basic")
        assert web.get(path, auth=("", TOKEN)).status_code == 200


def test_both_streams_want_the_token():
    with client(token=TOKEN) as web:
        for url in (LIVE, TAIL):
            with pytest.raises(WebSocketDenialResponse) as refused, web.websocket_connect(url):
                pass
            assert refused.value.status_code == 401


@pytest.mark.parametrize(
    "origin",
    [
        "https://evil.example",
        "null",
        "",
        f"{HERE}/",
        f"{HERE}.evil.example",
        "http://127.0.0.1",
        HERE.upper(),
    ],
)
def test_an_origin_is_right_to_the_letter(web, origin):
    assert web.get("/api/session", headers={"origin": origin}).json()["id"] == "console.origin"
    answer = web.post("/api/actions", json=RESET, headers={"origin": origin, **csrf(web)})
    assert answer.json()["id"] == "console.origin"
    for url in (LIVE, TAIL):
        with (
            pytest.raises(WebSocketDenialResponse) as refused,
            web.websocket_connect(url, headers={"origin": origin}),
        ):
            pass
        assert refused.value.status_code == 403


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
@pytest.mark.parametrize(
    ("mode", "dest"), [("no-cors", "image"), ("navigate", "iframe"), ("navigate", "document")]
)
def test_a_page_of_another_site_costs_no_work(site, mode, dest):
    examined = []
    watched = Watched(system, lambda: examined.append(1) or (system(), Probes()))
    headers = {"sec-fetch-site": site, "sec-fetch-mode": mode, "sec-fetch-dest": dest}
    with client(watched=watched) as web:
        answer = web.get("/api/doctor?anew=1", headers=headers)
        assert (answer.status_code, answer.json()["id"]) == (403, "console.site")
        assert examined == []
        assert web.get("/", headers=headers).status_code == 200
        own = {**headers, "sec-fetch-site": "same-origin"}
        assert web.get("/api/doctor?anew=1", headers=own).status_code == 200
        with web.websocket_connect(LIVE, headers={**headers, "origin": HERE}) as socket:
            assert "history" in socket.receive_json()


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "", "10.0.0.1"])
def test_without_a_token_no_other_name_leads_here(web, host):
    answer = web.get("/api/session", headers={"host": host})
    assert (answer.status_code, answer.json()["id"]) == (421, "console.host")


@pytest.mark.parametrize("token", [None, "", "x", "é", "a" * 5_000])
def test_an_action_brings_the_token_that_only_the_page_knows(web, token):
    headers = {} if token is None else {"x-penstock-csrf": token.encode()}
    answer = web.post("/api/actions", json=RESET, headers=headers)
    assert (answer.status_code, answer.json()["id"]) == (403, "console.csrf")


def test_the_token_of_another_console_is_no_good(web):
    with client() as other:
        answer = web.post("/api/actions", json=RESET, headers=csrf(other))
    assert answer.json()["id"] == "console.csrf"


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS"])
def test_other_methods_change_nothing(web, method):
    assert web.request(method, "/api/actions", headers=csrf(web)).status_code == 405
    assert web.request(method, "/api/actions").status_code == 403


def test_no_page_of_another_origin_may_read_or_frame_it(web):
    for path in ("/", "/api/session", "/api/nothing"):
        headers = web.get(path).headers
        assert "access-control-allow-origin" not in headers
        assert headers["content-security-policy"].startswith("default-src 'self';")
        assert headers["x-frame-options"] == "DENY"
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cross-origin-resource-policy"] == "same-origin"


@pytest.mark.parametrize(
    "path",
    ["/static/../server.py", "/static/%2e%2e/server.py", "/static/..%2fserver.py", "/static//etc/passwd",
     "/static/pages/../../security.py", "/static/", "/static/app.js%00.py", "/server.py"],
)  # fmt: skip
def test_a_name_is_never_made_a_path(web, path):
    answer = web.get(path)
    assert answer.status_code == 404
    assert "import" not in answer.text


def test_a_body_has_a_limit(web):
    answer = web.post("/api/actions", content=b"x" * 300_000, headers=csrf(web))
    assert answer.status_code == 413


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"a": NaN}', b'{"dry_run": 1}', b'"text"', b"\xff"])
def test_an_action_that_is_none(web, body):
    assert web.post("/api/actions", content=body, headers=csrf(web)).status_code in (400, 422)


def test_an_action_that_is_unknown(web):
    for name in ("__class__", "topic.delete", "../x"):
        answer = web.post("/api/actions", json={"action": name, "dry_run": False}, headers=csrf(web))
        assert answer.status_code == 404


def hear_all(socket):
    while True:
        socket.recv(timeout=10)


def test_what_a_browser_says_has_a_limit():
    watched = Watched(system, lambda: (system(), Probes()))
    with served(Settings(kafka={"bootstrap.servers": "127.0.0.1:1"}), watched) as address:
        url = address.replace("http", "ws") + "/api/live"
        with connect(url, origin=address) as socket:
            assert "history" in json.loads(socket.recv(timeout=10))
            socket.send("x" * 10_000)
            with pytest.raises(ConnectionClosed) as closed:
                hear_all(socket)
            assert closed.value.rcvd.code == 1009
        with connect(url, origin=address) as socket:
            socket.send('{"do": "something"}')
            with pytest.raises(ConnectionClosed) as closed:
                hear_all(socket)
            assert closed.value.rcvd.code == 1008


def test_read_only_shows_what_would_be_done_and_does_nothing(tmp_path):
    settings = Settings(kafka={"bootstrap.servers": "127.0.0.1:1"}, data=tmp_path)
    with client(settings, is_read_only=True) as web:
        assert web.get("/api/session").json()["read_only"] is True
        for name in ("group.reset", "pipeline.stop", "doctor.fix", "topic.send"):
            asked = {**RESET, "action": name, "dry_run": False, "name": "shop"}
            answer = web.post("/api/actions", json=asked, headers=csrf(web))
            assert (answer.status_code, answer.json()["id"]) == (403, "console.read-only")
        assert web.get("/api/audit").json() == {"lines": []}


@pytest.mark.parametrize("name", ["../../secret", "/etc/passwd", "..", "x\x00y"])
def test_a_pipelines_name_is_never_made_a_path(tmp_path, name):
    (tmp_path / "running").mkdir()
    (tmp_path / "secret.json").write_text('{"pid": 1}')
    settings = Settings(kafka={"bootstrap.servers": "127.0.0.1:1"}, data=tmp_path)
    with client(settings) as web:
        asked = {"action": "pipeline.stop", "dry_run": False, "name": name}
        answer = web.post("/api/actions", json=asked, headers=csrf(web))
        assert answer.status_code == 409
        assert "is not run" in answer.json()["message"]
        line, begun = web.get("/api/audit").json()["lines"]
    assert begun["outcome"] == "begun"
    assert line["action"] == "pipeline.stop"
    assert line["subject"] == name
    assert line["outcome"].startswith("failed: ")
    assert line["user"].endswith("(console)")


def settings(**values):
    return Settings(kafka={"bootstrap.servers": "b:1"}, console=values)


def test_another_address_than_loopback_needs_a_token():
    with pytest.raises(SettingsError, match=r"listen on '0\.0\.0\.0' without a token"):
        ConsoleSecurity.for_console(settings(), "0.0.0.0", 9480)
    found = ConsoleSecurity.for_console(settings(token=TOKEN, origins="https://a.example"), "0.0.0.0", 9480)
    assert (found.token, found.origins) == (TOKEN, {"https://a.example"})
    assert TOKEN not in repr(found)
    assert found.csrf not in repr(found)
    assert HERE in ConsoleSecurity.for_console(settings(), "127.0.0.1", 9480).origins


@pytest.mark.parametrize(
    ("values", "match"),
    [({"read_only": "perhaps"}, "true or false"), ({"speed": "1"}, "unknown setting"),
     ({"mask": "a b"}, "mask"), ({"origins": "*"}, "origins")],
)  # fmt: skip
def test_settings_that_are_none(values, match):
    with pytest.raises(SettingsError, match=match):
        ConsoleSecurity.for_console(settings(**values), "127.0.0.1", 9480)


def test_two_consoles_never_have_the_same_token():
    assert security().csrf != security().csrf
