"""Results to an HTTP endpoint, each at least once, with a key that receivers know duplicates by."""

from penstock.targets.webhook.blame import Blame
from penstock.targets.webhook.circuit import Circuit
from penstock.targets.webhook.redrive import redrive_webhook
from penstock.targets.webhook.retries import Retries
from penstock.targets.webhook.signature import verify_signature
from penstock.targets.webhook.status import WebhookStatus, webhook_status
from penstock.targets.webhook.target import Webhook

__all__ = [
    "Blame",
    "Circuit",
    "Retries",
    "Webhook",
    "WebhookStatus",
    "redrive_webhook",
    "verify_signature",
    "webhook_status",
]
