"""What a capture's tables, as they are declared, will not give: said before it starts."""

from penstock.capture.slot import Source

_LARGE = {"text", "varchar", "bpchar", "bytea", "json", "jsonb", "xml", "numeric", "hstore", "tsvector"}


def advice(source: Source) -> list[str]:
    """Return what the user of a capture should know about its tables."""
    return [each for path in source.capture.tables for each in _of_table(source, path)]


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
    large = [each.name for each in shape.columns if each.type.name in _LARGE or each.type.element]
    if large and facts.identity != "f" and shape.key:
        found.append(
            f"{path}: where an update leaves a large value of {', '.join(large)} as it is, the table is "
            f"asked for it; ALTER TABLE {shape.quoted} REPLICA IDENTITY FULL brings it with the change, and "
            "whole rows in `before`"
        )
    return found
