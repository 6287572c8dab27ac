"""Who may use the registry's server."""

import asyncio
from base64 import b64encode

import pytest

from penstock.errors import SettingsError
from penstock.registry.access import Access, check_address
from penstock.settings import Settings

TOKEN = "correct horse battery"


def status(token, **headers):
    """What a request with these headers gets; 200 is the application's own answer."""
    sent = []

    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": 200})

    async def send(message):
        sent.append(message)

    given = [(name.encode(), value.encode()) for name, value in headers.items()]
    asyncio.run(Access(app, token)({"type": "http", "headers": given}, None, send))
    return sent[0]["status"]


def basic(password, user="anybody"):
    return "Basic " + b64encode(f"{user}:{password}".encode()).decode()


@pytest.mark.parametrize("given", [f"Bearer {TOKEN}", f"bearer {TOKEN}", basic(TOKEN), basic(TOKEN, user="")])
def test_the_token_lets_in(given):
    assert status(TOKEN, authorization=given) == 200


@pytest.mark.parametrize(
    "given",
    [
        "",
        "Bearer",
        "Bearer x",
        f"Bearer {TOKEN}x",
        basic("x"),
        basic(""),
        "Basic !!!",
        "Basic",
        f"Digest {TOKEN}",
        TOKEN,
    ],
)
def test_everything_else_stays_out(given):
    assert status(TOKEN, authorization=given) == 401
    assert status(TOKEN) == 401


def test_a_token_that_is_no_ascii():
    assert status("gehëim", authorization=basic("gehëim")) == 200
    assert status("gehëim", authorization=basic("geheim")) == 401


@pytest.mark.parametrize(
    "origin", ["https://evil.example", "null", "http://127.0.0.1.evil.example", "http://["]
)
def test_without_a_token_pages_of_others_stay_out(origin):
    assert status(None, origin=origin) == 403
    assert status(TOKEN, origin=origin, authorization=f"Bearer {TOKEN}") == 200


@pytest.mark.parametrize("host", ["evil.example:8081", "127.0.0.1.evil.example", "[", "10.0.0.1"])
def test_without_a_token_no_other_name_leads_here(host):
    assert status(None, host=host) == 421
    assert status(TOKEN, host=host, authorization=f"Bearer {TOKEN}") == 200


def test_without_a_token_local_clients_come_in():
    assert status(None) == 200
    assert status(None, host="localhost:8081") == status(None, host="[::1]:8081") == 200
    assert status(None, origin="http://localhost:3000") == 200


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "[::1]", "localhost"])
def test_loopback_needs_no_token(host):
    check_address(host, None)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "", "10.0.0.1", "registry.example", "localhost.example"])
def test_any_other_address_needs_one(host):
    with pytest.raises(SettingsError, match="without a token"):
        check_address(host, None)
    check_address(host, TOKEN)
    with pytest.raises(SettingsError, match="empty"):
        check_address(host, " ")


def test_the_token_is_a_setting_and_a_secret(tmp_path):
    found = Settings.load(
        tmp_path, {"PENSTOCK_REGISTRY_TOKEN": TOKEN, "PENSTOCK_KAFKA_BOOTSTRAP_SERVERS": "b:1"}
    )
    assert TOKEN not in repr(found)
    assert found.registry["token"].value == TOKEN
    assert found.environment()["PENSTOCK_REGISTRY_TOKEN"] == TOKEN
    (tmp_path / "token").write_text(TOKEN + "\n")
    (tmp_path / "penstock.toml").write_text(
        f'[registry]\ntoken = {{ file = "{tmp_path}/token" }}\nworkers = 2'
    )
    assert Settings.load(tmp_path, {}).registry["token"].value == TOKEN
    (tmp_path / "penstock.toml").write_text(f'[registry]\ntoken = "{TOKEN}"')
    with pytest.raises(SettingsError, match="in the clear"):
        Settings.load(tmp_path, {})
