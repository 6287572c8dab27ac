"""Commands that installed packages register: found by name, imported when they are asked for."""

from importlib.metadata import EntryPoint, entry_points

import typer
from typer.core import TyperCommand, TyperGroup

from penstock.errors import ConfigurationError


class RegisteredCommands(TyperGroup):
    """A group that also has the commands of an entry-point group: Typer apps, or functions with options."""

    registered_as = "penstock.commands"

    def list_commands(self, ctx: typer.Context) -> list[str]:  # type: ignore[override]
        """The names of all commands, the registered ones last."""
        return [*super().list_commands(ctx), *sorted(entry.name for entry in self._entries())]

    def get_command(self, ctx: typer.Context, cmd_name: str) -> "TyperCommand | TyperGroup | None":  # type: ignore[override]
        """The command of a name, imported if it is a registered one."""
        found = super().get_command(ctx, cmd_name)
        named = [entry for entry in self._entries() if entry.name == cmd_name]
        return _loaded(named[0]) if found is None and named else found  # type: ignore[return-value]

    def _entries(self) -> list[EntryPoint]:
        return [*entry_points(group=self.registered_as)]


class RegisteredDemos(RegisteredCommands):
    """The demos of applications, which register themselves as `penstock.demos`."""

    registered_as = "penstock.demos"


def _loaded(entry: EntryPoint) -> "TyperCommand | TyperGroup":
    try:
        found = entry.load()
    except (ImportError, AttributeError) as error:
        message = f"the command {entry.name!r}, registered as {entry.value!r}, can't be imported: {error}"
        raise ConfigurationError(message, hint="install the package again, or remove it") from error
    app = found
    if not isinstance(found, typer.Typer):
        app = typer.Typer(rich_markup_mode="rich")
        app.command(entry.name)(found)
    command = typer.main.get_command(app)
    command.name = entry.name
    return command  # type: ignore[return-value]
