"""The embedded services: a real Kafka and a real PostgreSQL, started and stopped for you."""

from penstock.local.platform import SERVICES, Platform, running
from penstock.local.service import ServiceStatus

__all__ = ["SERVICES", "Platform", "ServiceStatus", "running"]
