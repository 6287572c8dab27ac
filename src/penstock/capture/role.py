"""The role of a capture, with no more rights than it needs, as SQL for the database's owner."""

from penstock.capture.slot import Source
from penstock.capture.tables import quoted


def role_script(source: Source, role: str) -> str:
    """Return the SQL that makes the role and the publication; the password is left to the reader."""
    name, capture = quoted(role), source.capture
    schemas = sorted({path.partition(".")[0] for path in capture.paths})
    tables = [path.partition(".") for path in capture.paths]
    lines = [
        f"-- The role of capture {capture.name}: it logs in, replicates, and reads its tables.",
        f"CREATE ROLE {name} LOGIN REPLICATION PASSWORD '…';",
        f"GRANT CONNECT ON DATABASE {quoted(source.database)} TO {name};",
        *(f"GRANT USAGE ON SCHEMA {quoted(each)} TO {name};" for each in schemas),
        *(f"GRANT SELECT ON {quoted(schema)}.{quoted(table)} TO {name};" for schema, _, table in tables),
        "-- Who publishes a table has to own it: the capture's role does not.",
        f"{source.publication_command()};",
    ]
    return "\n".join(lines)
