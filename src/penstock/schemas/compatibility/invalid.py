"""The error for a schema that is not one."""

from penstock.errors import ConfigurationError


class InvalidSchemaError(ConfigurationError):
    """A text that is not a schema of its kind; `where` is the place in it, as a path."""

    id = "configuration.invalid-schema"

    def __init__(self, message: str, *, where: str = "", hint: str | None = None) -> None:
        super().__init__(f"{where}: {message}" if where else message, hint=hint)
        self.where = where
