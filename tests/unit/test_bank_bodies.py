"""Bodies of the bank's requests are parsed where they hold up no other request."""

import threading

from starlette.routing import Route
from tests.gateway import client, declared, post

from penstock.apps.bank import http


def test_a_body_is_parsed_in_a_thread_of_its_own(monkeypatch):
    parse, threads = http.parsed, []

    def parsed(body):
        threads.append(threading.current_thread().name)
        return parse(body)

    monkeypatch.setattr(http, "parsed", parsed)
    route = Route("/echo", http._answering(lambda _, fields: fields), methods=["POST"])
    web = client(declared(routes=([route],)))
    assert post(web, {"amount": "1"}, "/echo").json() == {"amount": "1"}
    assert post(web, [1], "/echo").status_code == 422
    assert all("worker" in each for each in threads)
    assert len(threads) == 2
