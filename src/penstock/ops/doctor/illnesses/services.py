"""Services that are down, and questions that nobody answered."""

from collections.abc import Iterator

from penstock.ops.doctor.finding import Finding
from penstock.ops.doctor.probes import Probes
from penstock.ops.model import System

DOWN, UNANSWERED = "service.down", "system.unanswered"


def services_down(system: System, probes: Probes) -> Iterator[Finding]:  # noqa: ARG001
    """Find local services that have ended by themselves."""
    for service in system.services:
        if service.state == "crashed":
            yield Finding(
                DOWN,
                "error",
                service.name,
                "it has ended by itself",
                {"state": service.state, "log": str(service.log)},
                f"see the end of {service.log}",
                "start it: `penstock up`",
            )


def unanswered(system: System, probes: Probes) -> Iterator[Finding]:
    """Report what the doctor could not look at: of that it can't say that it is healthy.

    A log that does not answer is an error: nothing of it, its groups and its flows was seen.
    """
    for said in (*system.unanswered, *probes.unanswered):
        yield Finding(
            UNANSWERED,
            "error" if said.startswith("topics:") else "info",
            "doctor",
            said,
            {},
            "nobody answered, or this user may not ask",
            "what depends on it was not checked",
        )
