"""The reference: a page for each package, a section for each public name, filled in from its docstring."""

from scripts.docs.pages import relative
from scripts.docs.public import Package, packages

INDEX = "reference/index.md"
# Where a package's ideas are explained, by the beginning of its name; the longest that fits counts.
_GUIDES = {
    "penstock.apps.demo": "applications.md",
    "penstock.archive": "archive.md",
    "penstock.capture": "capture.md",
    "penstock.events": "events.md",
    "penstock.gateway": "gateway.md",
    "penstock.inlets": "inlets.md",
    "penstock.lab": "lab.md",
    "penstock.local": "local.md",
    "penstock.log": "log.md",
    "penstock.ops.capacity": "capacity.md",
    "penstock.ops.lateness": "watermark-advisor.md",
    "penstock.ops.why": "why.md",
    "penstock.pipeline": "flows.md",
    "penstock.process": "flows.md",
    "penstock.process.dedup": "windows.md",
    "penstock.process.joins": "joins.md",
    "penstock.process.keyed": "keyed.md",
    "penstock.process.patterns": "keyed.md",
    "penstock.process.ranking": "windows.md",
    "penstock.process.sketches": "windows.md",
    "penstock.process.windows": "windows.md",
    "penstock.registry": "schemas.md",
    "penstock.replica": "replica.md",
    "penstock.schemas": "schemas.md",
    "penstock.settings": "settings.md",
    "penstock.sourcing": "sourcing.md",
    "penstock.targets": "targets.md",
    "penstock.targets.lake": "targets/lake.md",
    "penstock.targets.opensearch": "targets/search.md",
    "penstock.targets.redis": "targets/redis.md",
    "penstock.targets.search": "targets/search.md",
    "penstock.targets.webhook": "targets/webhooks.md",
    "penstock.testing": "how-to/test-your-flows.md",
    "penstock.testing.lane_contract": "how-to/write-a-target.md",
    "penstock.testing.sink_contract": "how-to/write-a-target.md",
    "penstock.testing.upsert_contract": "how-to/write-a-target.md",
}


def pages() -> dict[str, str]:
    """The text of each page of the reference, by its path."""
    return {INDEX: _index()} | {each.page: _page(each) for each in packages()}


def guide(package: str) -> str | None:
    """The page that explains a package.

    >>> guide("penstock.schemas.compatibility.avro"), guide("penstock.errors")
    ('schemas.md', None)
    """
    fitting = [each for each in _GUIDES if f"{package}.".startswith(f"{each}.")]
    return _GUIDES[max(fitting, key=len)] if fitting else None


def _page(package: Package) -> str:
    lines = [f"# {package.name}", _described(package)]
    explained = guide(package.name)
    if explained:
        lines.append(f"[Explained with examples]({relative(package.page, explained)}){{ .guide }}")
    lines += [_section(package, name) for name in package.names]
    return "\n\n".join(lines) + "\n"


def _section(package: Package, name: str) -> str:
    """A name's section; one that is called like its module is asked for there, and keeps its anchor."""
    if name not in package.homes:
        return f"::: {package.name}.{name}"
    return f"[](){{ #{package.name}.{name} }}\n\n::: {package.homes[name]}.{name}"


def _described(package: Package) -> str:
    """A package's docstring; what is drawn in it keeps its lines."""
    first, _, rest = package.docstring.partition("\n\n")
    return f"{first}\n\n```text\n{rest}\n```" if "├" in rest else package.docstring


def _index() -> str:
    lines = ["# Reference", "Every public name, from its docstring.", ""]
    lines += ["| package | what it holds | names |", "|---|---|---:|"]
    for each in packages():
        first = each.docstring.splitlines()[0]
        lines.append(f"| [`{each.name}`]({relative(INDEX, each.page)}) | {first} | {len(each.names)} |")
    return "\n".join(lines) + "\n"
