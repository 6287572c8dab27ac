"""The embedded services: a real Kafka, PostgreSQL and, if wanted, Redis, started and stopped for you."""

from penstock.local.platform import KNOWN, SERVICES, Platform, installed, running, services_of
from penstock.local.service import ServiceStatus

__all__ = ["KNOWN", "SERVICES", "Platform", "ServiceStatus", "installed", "running", "services_of"]
