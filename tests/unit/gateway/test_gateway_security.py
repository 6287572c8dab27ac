"""Who is let in, how fast, and how much they may bring."""

import time
from concurrent.futures import ThreadPoolExecutor

import anyio
import pytest
from starlette.responses import JSONResponse
from starlette.routing import Route
from tests.gateway import HERE, NOWHERE, client, declared, orders, post

from penstock.errors import LogError, SettingsError
from penstock.gateway import Gateway, Limits, Security, health
from penstock.settings import Settings

TOKEN = "correct horse battery"


def test_a_token_is_wanted_everywhere_but_where_there_is_a_signature():
    web = client(token=TOKEN)
    for headers in ({}, {"authorization": "Bearer x"}, {"authorization": TOKEN}, {"authorization": "Bearer"}):
        answer = web.get("/openapi.json", headers=headers)
        assert (answer.status_code, answer.json()["id"]) == (401, "gateway.token")
        assert answer.headers["www-authenticate"].startswith("Bearer")
    assert web.get("/openapi.json", headers={"authorization": f"Bearer {TOKEN}"}).status_code == 200
    assert post(web, {}).status_code == 401
    assert post(web, {}, "/webhooks/unknown").status_code == 404


@pytest.mark.parametrize("path", ["/webhooks/%2e%2e/topics/orders", "/webhooks//topics/orders"])
def test_no_path_leads_around_the_token(path):
    assert post(client(token=TOKEN), {"customer": "a", "amount": 1}, path).status_code in (401, 404)


@pytest.mark.parametrize(
    "origin",
    ["https://evil.example", "null", "", f"{HERE}/", f"{HERE}.evil.example", "http://127.0.0.1", "http://127.0.0.1:8081",
     "https://127.0.0.1:8080", HERE.upper()],
)  # fmt: skip
def test_an_origin_is_right_to_the_letter(origin):
    for web in (client(), client(token=TOKEN)):
        headers = {"origin": origin, "authorization": f"Bearer {TOKEN}"}
        assert web.get("/openapi.json", headers=headers).status_code == 403
    assert client().get("/openapi.json", headers={"origin": HERE}).status_code == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8080", "127.0.0.1.evil.example", "", "10.0.0.1", "[::"]
)
def test_without_a_token_no_other_name_leads_here(host):
    answer = client().get("/health", headers={"host": host})
    assert (answer.status_code, answer.json()["id"]) == (421, "gateway.host")
    assert client(token=TOKEN).get("/openapi.json", headers={"host": host}).status_code == 401


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:9", "127.0.0.2:80", "[::1]:8080"])
def test_this_machine_has_several_names(host):
    assert client().get("/openapi.json", headers={"host": host}).status_code == 200


EMBEDDED = {"sec-fetch-mode": "no-cors", "sec-fetch-dest": "image"}
FRAMED = {"sec-fetch-mode": "navigate", "sec-fetch-dest": "iframe"}
LINKED = {"sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}


@pytest.mark.parametrize("site", ["cross-site", "same-site", "", "anything"])
@pytest.mark.parametrize("how", [EMBEDDED, FRAMED, {}])
def test_a_page_of_another_site_embeds_nothing_of_here(site, how):
    answer = client().get("/openapi.json", headers={"sec-fetch-site": site, **how})
    assert (answer.status_code, answer.json()["id"]) == (403, "gateway.site")


def test_a_link_of_another_site_may_be_followed_and_known_origins_may_ask():
    web = client(origins=["https://shop.example"])
    for headers in (
        {"sec-fetch-site": "cross-site", **LINKED},
        {"sec-fetch-site": "cross-site", "origin": "https://shop.example"},
        {"sec-fetch-site": "same-origin", **EMBEDDED},
        {"sec-fetch-site": "none", **LINKED},
    ):
        assert web.get("/openapi.json", headers=headers).status_code == 200


@pytest.mark.parametrize("name", ["authorization", "origin", "idempotency-key", "content-type"])
def test_a_header_that_decides_comes_once(name):
    answer = client().post("/topics/orders", content=b"{}", headers=[(name, "a"), (name, "b")])
    assert (answer.status_code, answer.json()["id"]) == (400, "gateway.header")


def test_a_page_of_a_known_origin_may_read_the_answers():
    web = client(origins=["https://shop.example"], token=TOKEN)
    asked = {"origin": "https://shop.example", "access-control-request-method": "POST"}
    asked["access-control-request-headers"] = "idempotency-key"
    assert web.options("/topics/orders", headers=asked).status_code == 200
    headers = {"origin": "https://shop.example", "authorization": f"Bearer {TOKEN}"}
    answer = web.get("/openapi.json", headers=headers)
    assert answer.headers["access-control-allow-origin"] == "https://shop.example"


def test_a_body_has_a_limit():
    web = client(limits=Limits(body=1_000))
    assert post(web, b"{" + b" " * 1_000).status_code == 413
    chunks = (b" " * 400 for _ in range(3))
    answer = web.post("/topics/orders", content=chunks, headers={"content-type": "application/json"})
    assert (answer.status_code, answer.json()["id"]) == (413, "gateway.body")
    assert post(web, b"{" + b" " * 900).status_code == 400


def test_a_client_that_is_too_fast_waits():
    web = client(limits=Limits(rate=1, burst=3))
    answers = [web.get("/openapi.json") for _ in range(4)]
    assert [each.status_code for each in answers] == [200, 200, 200, 429]
    assert answers[3].headers["retry-after"] in ("1", "2")
    assert answers[3].json()["id"] == "gateway.too-many"


def settings(**values):
    return Settings(kafka={"bootstrap.servers": "b:1"}, gateway=values)


def test_another_address_than_loopback_needs_a_token():
    with pytest.raises(SettingsError, match=r"listen on '0\.0\.0\.0' without a token"):
        Security.of(settings(), "0.0.0.0", 8080)
    found = Security.of(
        settings(token=TOKEN, origins="https://a.example, http://b.example:81"), "0.0.0.0", 80
    )
    assert found.token == TOKEN
    assert TOKEN not in repr(found)
    assert found.origins == {"https://a.example", "http://b.example:81"}
    assert HERE in Security.of(settings(), "127.0.0.1", 8080).origins


@pytest.mark.parametrize("origin", ["a.example", "https://", "https://a.example/", "*"])
def test_an_origin_that_is_none(origin):
    with pytest.raises(SettingsError, match="origins"):
        Security.of(settings(origins=origin), "127.0.0.1", 8080)


def test_the_settings_name_the_limits(tmp_path):
    (tmp_path / "penstock.toml").write_text(
        '[gateway]\nrate = 7\nwait = "2 minutes"\norigins = "https://a.example"'
    )
    found = Settings.load(tmp_path, {"PENSTOCK_GATEWAY_TOKEN": TOKEN})
    assert (Limits.of(found).rate, Limits.of(found).wait.total_seconds()) == (7, 120)
    assert TOKEN not in repr(found)
    assert Security.of(found, "0.0.0.0", 1).token == TOKEN
    with pytest.raises(SettingsError, match="unknown setting 'speed'"):
        Limits.of(settings(speed="1"))
    with pytest.raises(SettingsError, match="rate is 0"):
        Limits.of(settings(rate="0"))
    (tmp_path / "penstock.toml").write_text('[gateway]\ntoken = "in the clear"')
    with pytest.raises(SettingsError, match="in the clear"):
        Settings.load(tmp_path, {})


async def balance(request):
    if request.path_params["account"] == "broken":
        raise RuntimeError("secret detail")
    return JSONResponse({"account": request.path_params["account"]})


def test_routes_of_a_module_are_served_under_the_same_security():
    routes = [Route("/accounts/{account}", balance)]
    for given in (routes, lambda found: routes if found is NOWHERE else []):
        web = client(declared(orders, routes=(given,)), token=TOKEN)
        assert web.get("/accounts/ada").status_code == 401
        assert web.get("/accounts/ada", headers={"authorization": f"Bearer {TOKEN}"}).json() == {
            "account": "ada"
        }


def test_a_route_that_fails_says_nothing_of_its_inside():
    web = client(declared(orders, routes=([Route("/accounts/{account}", balance)],)))
    answer = web.get("/accounts/broken")
    assert answer.status_code == 500
    assert answer.json()["id"] == "internal"
    assert "secret" not in answer.text


@pytest.mark.parametrize("path", ["/", "/topics/mine", "/health", "/webhooks/mine"])
def test_a_route_does_not_take_the_gateways_own_path(path):
    served = declared(orders, routes=([Route(path, balance)],))
    with pytest.raises(SettingsError, match="gateway_routes"):
        Gateway(served, NOWHERE, Limits()).application(Security())


@pytest.mark.parametrize("routes", [{"/a": balance}, [balance], lambda _: None])
def test_routes_are_a_list_of_starlettes(routes):
    with pytest.raises(SettingsError, match="expected a list"):
        Gateway(declared(orders, routes=(routes,)), NOWHERE, Limits()).application(Security())


def test_a_body_has_one_end():
    headers = {"content-length": "2", "transfer-encoding": "chunked"}
    answer = client().post("/topics/orders", content=b"{}", headers=headers)
    assert (answer.status_code, answer.json()["id"]) == (400, "gateway.header")


@pytest.fixture
def failing(monkeypatch):
    """A gateway whose services fail; how often they were asked."""
    asked = []

    async def check(_):
        asked.append(time.monotonic())
        await anyio.sleep(0.1)
        raise LogError("can't list topics: kafka.internal:9092 is away")

    monkeypatch.setattr(Gateway, "_check", check)
    return asked


def test_strangers_hear_that_it_fails_and_we_hear_why(failing):
    web = client(token=TOKEN)
    answer = web.get("/health")
    assert (answer.status_code, answer.json()["id"]) == (503, "gateway.unhealthy")
    assert "kafka" not in answer.text
    assert "kafka.internal" in web.get("/health", headers={"authorization": f"Bearer {TOKEN}"}).text
    assert "kafka.internal" in client().get("/health").text


def test_the_services_are_asked_once_for_all_who_ask(failing, monkeypatch):
    with client(declared()) as web, ThreadPoolExecutor(10) as threads:
        answers = list(threads.map(lambda _: web.get("/health").status_code, range(30)))
        assert (set(answers), len(failing)) == ({503}, 1)
        monkeypatch.setattr(health, "_KEEP_S", 0.0)
        time.sleep(1.0)
        answers = [web.get("/health").status_code for _ in range(3)]
        assert (answers, len(failing)) == ([503] * 3, 4)
