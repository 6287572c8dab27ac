"""What a capture's tables, as they are declared, will not give: said before it starts."""

from penstock.capture.slot import Source

_LARGE = {"bytea", "json", "jsonb", "xml", "hstore", "tsvector"}


def advice(source: Source) -> list[str]:
    """Return what the user of a capture should know about its tables."""
    found = [each for path in source.capture.tables for each in _of_table(source, path)]
    large = [path for path in source.capture.tables if _has_large_values(source, path)]
    if large:
        found.append(
            f"{', '.join(large)}: where an update leaves a large value as it is, the table is asked for it; "
            "with REPLICA IDENTITY FULL it comes with the change (docs/capture.md)"
        )
    return found


def _of_table(source: Source, path: str) -> list[str]:
    facts, shape = source.catalogue.facts(path), source.catalogue.shape(path)
    found = []
    if not shape.key:
        found.append(f"{path} has no primary key: its records have no key, and its topic is not compacted")
    if facts.identity == "n" or (facts.identity == "d" and not shape.key):
        found.append(
            f"{path} has no replica identity: PostgreSQL refuses updates and deletes of a published table "
            f"without one; ALTER TABLE {shape.quoted} REPLICA IDENTITY FULL"
        )
    return found


def _has_large_values(source: Source, path: str) -> bool:
    facts, shape = source.catalogue.facts(path), source.catalogue.shape(path)
    return facts.identity != "f" and any(
        each.type.name in _LARGE or each.type.element for each in shape.columns
    )
