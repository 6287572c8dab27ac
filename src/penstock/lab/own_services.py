"""Services of an experiment's own: they can be killed, and their data goes with the run."""

from typing import TYPE_CHECKING

from penstock.documents import JsonObject
from penstock.lab.removal import kill_services
from penstock.local import Platform
from penstock.settings import Settings

if TYPE_CHECKING:
    from penstock.lab.run import Run


class OwnServices:
    """A local platform in a folder that is removed; a lab that was killed leaves them to the next one."""

    def __init__(self, run: "Run", services: tuple[str, ...], brokers: int | None = None) -> None:
        self._run = run
        self.platform = Platform(run.folder() / "data", services=services, brokers=brokers)
        run.manifest.note("platforms", self._noted)
        run.adopt(self)

    @property
    def pid(self) -> int | None:
        """They are found again by their folder."""
        return None

    @property
    def alive(self) -> bool:
        return any(each.pid for each in self.platform.status())

    def start(self) -> Settings:
        """Start what does not run, and return where it is."""
        settings = self.platform.up()
        self._run.adopt(self)
        return settings

    def ask_to_end(self) -> None:
        self.kill()

    def kill(self) -> None:
        kill_services(**self._noted)

    @property
    def _noted(self) -> JsonObject:
        return {"data": str(self.platform.data), "services": [*self.platform.services]}
