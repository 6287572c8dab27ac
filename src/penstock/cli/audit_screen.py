"""What `penstock replica audit` shows: a line for each table, and the rows that differ."""

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

import typer

from penstock.cli.output import console, show

if TYPE_CHECKING:
    from penstock.replica import AuditReport

_MOST = 50  # rows that are listed for people


def show_audit(report: "AuditReport", *, as_json: bool, repaired: "AuditReport | None" = None) -> None:
    """Show what an audit has found, and what is left of it after a repair."""
    if as_json:
        typer.echo(
            json.dumps(_plain(report) | ({"repaired": _plain(repaired)} if repaired else {}), indent=2)
        )
        return
    _show(report)
    if repaired is not None:
        console.print("captured again, and looked at once more:", markup=False)
        _show(repaired)


def _show(report: "AuditReport") -> None:
    tables = [
        {
            "table": each.table,
            "rows": each.rows,
            "ranges": each.ranges,
            "differences": len(each.differences),
            "unsettled": each.unsettled,
        }
        for each in report.tables
    ]
    columns = ("table", "rows", "ranges", "differences", "unsettled")
    show(tables, columns, as_json=False, empty="no tables")
    for each in report.differences[:_MOST]:
        where = f" in {', '.join(each.columns)}" if each.columns else ""
        line = f"{each.kind}: {each.table} {','.join(each.key)}{where}"
        console.print(line, markup=False, highlight=False)
    count = len(report.differences)
    if count > _MOST:
        console.print(f"… and {count - _MOST:,} more: --json lists all", markup=False, highlight=False)
    words = "equal" if report.is_equal else f"{count:,} rows differ"
    console.print(f"{words}; compared in {report.seconds} s", markup=False, highlight=False)


def _plain(report: "AuditReport") -> dict[str, object]:
    tables = [
        {name: value for name, value in asdict(each).items() if name not in ("bad", "is_sorted")}
        for each in report.tables
    ]
    return {"replica": report.replica, "equal": report.is_equal, "seconds": report.seconds, "tables": tables}
