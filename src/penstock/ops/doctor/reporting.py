"""Posts findings to a webhook, as one JSON document."""

import json
from collections.abc import Sequence
from dataclasses import asdict

from penstock.documents import JsonObject
from penstock.errors import SinkError
from penstock.events import new_id
from penstock.ops.doctor.finding import Finding
from penstock.settings import Settings
from penstock.targets.webhook.client import Client
from penstock.targets.webhook.endpoint import resolved
from penstock.targets.webhook.event import Event, Request


def document(at: float, findings: Sequence[Finding]) -> JsonObject:
    """Return findings as a document: whether all is well, how many are of which severity, and each."""
    counts: dict[str, int] = {}
    for each in findings:
        counts[each.severity] = counts.get(each.severity, 0) + 1
    healthy = not any(each.is_trouble for each in findings)
    return {"at": at, "healthy": healthy, "counts": counts, "findings": [asdict(each) for each in findings]}


def post(settings: Settings, webhook: str, at: float, findings: Sequence[Finding]) -> None:
    """Post findings to an address, or to the connection of that name, whose secret signs them."""
    is_address = "://" in webhook
    endpoint = resolved(settings, None if is_address else webhook, webhook if is_address else None, {})
    client = Client(endpoint, "penstock.doctor", "10 seconds", "5 seconds")
    body = json.dumps(document(at, findings), ensure_ascii=False)
    try:
        answer = client.post(Request((Event(new_id(), None, body),)), 1)
    finally:
        client.close()
    if not answer.is_success:
        raise SinkError(
            f"the findings were not delivered: {endpoint.name} {endpoint.redacted(answer.said)}",
            hint="see whether the endpoint is up and takes a POST of JSON",
        )
