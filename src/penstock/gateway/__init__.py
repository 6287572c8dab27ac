"""HTTP and WebSocket: events in, views and streams out."""

from penstock.gateway.declared import Declared
from penstock.gateway.limits import Limits
from penstock.gateway.security import Security
from penstock.gateway.server import Gateway, serve
from penstock.gateway.view import View
from penstock.gateway.webhook import SignedWebhook

__all__ = ["Declared", "Gateway", "Limits", "Security", "SignedWebhook", "View", "serve"]
