"""What `penstock status` shows: a section for each kind of thing that there is."""

from collections.abc import Iterable, Iterator
from datetime import timedelta
from pathlib import Path

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from penstock.cli.figures import number, size, span
from penstock.local import ServiceStatus
from penstock.ops import flow_figures
from penstock.ops.model import GroupStatus, System
from penstock.pipeline.flow_status import FlowStatus, Sample

_COLOURS = {
    "running": "green", "stopped": "yellow", "crashed": "red", "failed": "red", "silent": "red",
    "waiting": "yellow", "ok": "green", "warning": "yellow", "stalled": "red", "rewind": "yellow",
    "not running": "red",
}  # fmt: skip
_SOON = 86_400.0  # seconds: retention that is nearer is shown
_LONGEST = 60  # characters of an error or a reason


def screen(system: System) -> RenderableType:
    """Return all sections in which there is something."""
    return Group(*_parted(_sections(system)))


def services_table(found: Iterable[ServiceStatus]) -> Table:
    """Return the services of this machine."""
    table = Table("service", "state", "address", "pid", "up for", "version", box=None, pad_edge=False)
    table.add_column("log", overflow="fold")
    for one in found:
        uptime = "" if one.uptime is None else str(timedelta(seconds=int(one.uptime)))
        pid = "" if one.pid is None else str(one.pid)
        row = one.name, _state(one.state), one.address or "", pid, uptime, one.version, Text(_near(one.log))
        table.add_row(*row)
    return table


def _near(path: Path) -> str:
    """A path as it is written in the working folder."""
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


def _sections(system: System) -> Iterator[RenderableType]:
    if system.services:
        yield services_table(system.services)
    if system.flows:
        yield _flows(system)
        yield from _troubles(system)
    if system.groups:
        yield _groups(system.groups)
    if system.captures:
        rows = [(each.capture, each.state, size(each.behind), span(each.seconds), each.snapshot, each.error)
                for each in system.captures]  # fmt: skip
        yield _table(("capture", "state", "behind>", "age>", "snapshot", "error"), rows)
    if system.replicas:
        rows = [(each.replica, each.state, number(each.lag), span(each.seconds), each.capture, each.error)
                for each in system.replicas]  # fmt: skip
        yield _table(("replica", "state", "behind>", "age>", "capture", "error"), rows)
    if system.archives:
        rows = [(each.topic, each.state, number(each.behind), number(each.archived), each.to, each.error)
                for each in system.archives]  # fmt: skip
        yield _table(("archive of", "state", "behind>", "archived>", "to", "error"), rows)
    if any(each.waiting for each in system.dead_letters):
        yield _dead_letters(system)
    for each in system.unanswered:
        yield Text(f"not answered: {each}", style="yellow")


def _parted(sections: Iterable[RenderableType]) -> Iterator[RenderableType]:
    """An empty line before each table but the first one."""
    for place, each in enumerate(sections):
        if place and isinstance(each, Table):
            yield Text("")
        yield each


def _flows(system: System) -> Table:
    columns = ("flow", "state", "rows/s>", "p50>", "p99>", "watermark>", "state size>", "batch>", "behind>",
               "writes")  # fmt: skip
    return _table(columns, (_flow(each, system) for each in system.flows))


def _flow(flow: FlowStatus, system: System) -> tuple[str, ...]:
    last = flow_figures.last(flow)
    delay = flow_figures.watermark_delay(flow)
    behind = flow_figures.behind(flow, system.groups, system.at)
    return (
        flow.label if not flow.generation else f"{flow.label} (generation {flow.generation})",
        flow_figures.state(flow, system.at),
        number(flow_figures.rate(flow)) if flow_figures.is_at_work(flow, system.at) else "–",
        _bound(flow, 0.5),
        _bound(flow, 0.99),
        "–" if delay is None else f"-{span(delay)}",
        _kept(last),
        span(last.seconds if last else None),
        "–" if behind is None else number(behind),
        flow.target,
    )


def _kept(last: Sample | None) -> str:
    """The rows and bytes of state; the bytes alone where Spark does not count rows."""
    if last is None or last.state_rows == 0:
        return "–"
    return " ".join((*([] if last.state_rows is None else [number(last.state_rows)]), size(last.state_bytes)))


def _bound(flow: FlowStatus, share: float) -> str:
    """A quantile is known to be below a bound of the histogram."""
    found = flow_figures.percentile(flow, share)
    return "–" if found is None else f"≤{span(found)}"


def _troubles(system: System) -> Iterator[Text]:
    """What is worth a line of its own beside a flow's figures."""
    for flow in system.flows:
        if parts := flow_figures.phases(flow):
            shown = ", ".join(f"{name} {span(took)}" for name, took in parts.items())
            yield Text(f"  {flow.label}: last batch {shown}", style="dim")
        if flow.is_silent(system.at):
            yield Text(f"  {flow.label}: {flow.process} said nothing for {span(system.at - flow.at)}", "red")
        if flow.restarts:
            times = "once" if flow.restarts == 1 else f"{flow.restarts:,} times"
            yield Text(f"  {flow.label}: started again {times}", style="yellow")
        if flow.troubles:
            ago = span(max(0.0, system.at - flow.troubles[-1].at))
            yield Text(f"  {flow.label}: {ago} ago: {flow.troubles[-1].text}", style="yellow")
        if flow.bottleneck:
            yield Text(f"  {flow.label}: {flow.bottleneck}", style="yellow")


def _groups(groups: Iterable[GroupStatus]) -> Table:
    columns = ("group", "kind", "state", "members>", "lag>", "age>", "judged", "deleted in>", "topics")
    return _table(columns, (_group(each) for each in groups))


def _group(group: GroupStatus) -> tuple[str, ...]:
    left = min((each.left for each in group.lags if each.left is not None), default=None)
    topics = list(dict.fromkeys(each.topic for each in group.lags))
    return (
        group.group,
        group.kind,
        group.state,
        number(len(group.members)),
        number(group.events),
        span(group.seconds),
        group.judgement,
        "" if left is None or left > _SOON else span(left),
        ", ".join(topics[:2]) + (f" +{len(topics) - 2}" if topics[2:] else ""),
    )


def _dead_letters(system: System) -> Table:
    rows = [
        (each.source, number(each.waiting), number(each.kept), _ago(each.newest, system.at), each.reason)
        for each in system.dead_letters
        if each.waiting
    ]
    return _table(("dead letters of", "waiting>", "kept>", "newest>", "reason"), rows)


def _ago(moment: float | None, now: float) -> str:
    return "–" if moment is None else f"{span(max(0.0, now - moment))} ago"


def _table(columns: Iterable[str], rows: Iterable[Iterable[str]]) -> Table:
    """A column whose name ends with > is one of figures."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in columns:
        justify = "right" if name.endswith(">") else "left"
        table.add_column(name.removesuffix(">"), justify=justify, overflow="fold")  # type: ignore[arg-type]
    for row in rows:
        table.add_row(*(_state(cell) for cell in row))
    return table


def _state(cell: str) -> Text:
    short = cell if len(cell) <= _LONGEST else cell[: _LONGEST - 1] + "…"
    return Text(short, style=_COLOURS.get(cell, ""))
