// What an audit of a replica has found: its tables, and the rows that differ.
import { empty, h, panel, pill } from "../dom.js";
import { number, seconds } from "../format.js";
import { table } from "../table.js";

const MOST = 200;

export function auditShown(found) {
  return h("div", { class: "stack" }, one(found, "What was compared"), found.repaired ? one(found.repaired, "Captured again, and looked at once more") : null);
}

function one(found, title) {
  const list = table(title, [
    { label: "Table", name: true, cell: (row) => row.table }, { label: "Rows", num: true, cell: (row) => number(row.rows) },
    { label: "Ranges", num: true, cell: (row) => number(row.ranges), wide: true }, { label: "Rows that differ", num: true, cell: (row) => number(row.differences.length) },
    { label: "Unsettled", num: true, cell: (row) => number(row.unsettled), wide: true },
  ], (row) => row.table, empty("No tables")).update(found.tables);
  const rows = found.tables.flatMap((each) => each.differences), box = panel(title, list);
  box.head.append(found.equal ? pill("ok", "equal") : pill("error", `${number(rows.length)} rows differ`), h("span", { class: "note spacer" }, `compared in ${seconds(found.seconds)}`));
  if (!rows.length) return box;
  const line = (row) => (typeof row === "string" ? h("tr", {}, h("td", { colspan: 4 }, row)) : h("tr", {}, h("td", { class: "name" }, row.table), h("td", { class: "mono" }, [row.key].flat().join(", ")), h("td", {}, row.kind), h("td", {}, (row.columns ?? []).join(", ") || "–")));
  const shown = panel(`Rows that differ${rows.length > MOST ? `, the first ${MOST}` : ""}`, h("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": "Rows that differ" }, h("table", {}, h("thead", {}, h("tr", {}, ["Table", "Key", "How", "Columns"].map((each) => h("th", { scope: "col" }, each)))), h("tbody", {}, rows.slice(0, MOST).map(line)))));
  return h("div", { class: "stack" }, box, shown);
}
