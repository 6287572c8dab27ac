// Views: the tables that flows write, asked by key, or the first rows, now or as of a time.
import { get } from "../api.js";
import { empty, failure, fill, h, panel, put } from "../dom.js";
import { number, time } from "../format.js";
import { table } from "../table.js";

export function views() {
  const list = table("Views", [
    { label: "View", name: true, sort: (row) => row.name, cell: (row) => h("a", { href: `#/views/${encodeURIComponent(row.name)}` }, row.name), sig: (row) => row.name },
    { label: "Table", cell: (row) => row.table },
    { label: "Key", cell: (row) => row.keys.join(", ") },
    { label: "Rows are", cell: (row) => (row.write === "append" ? "appended" : "upserted"), wide: true },
    { label: "As of a time", cell: (row) => (row.has_history ? "yes" : "no"), wide: true },
  ], (row) => row.name, empty("No views are known", "Start the console with the module whose pipeline writes a table.", "penstock console -m shop.py"));
  const problem = h("div");
  get("views").then((found) => list.update(found.views), (error) => fill(problem, failure(error)));
  return { nodes: [problem, panel("Views", list)] };
}

export function view(name) {
  const fields = h("form", { class: "fields body", onsubmit: (event) => { event.preventDefault(); load(); } }), shown = h("div"), said = h("span", { class: "note spacer", role: "status" }), foot = h("div", { class: "body" });
  shown.className = "nowrap";
  const box = panel("Rows", fields, shown, foot), keys = [], at = h("input", { type: "datetime-local", step: 1 }), order = h("input", { placeholder: "-amount", size: 12 });
  box.head.append(said);
  const follow = h("input", { type: "checkbox" });
  const timer = setInterval(() => { if (follow.checked && !document.hidden) load(); }, 1500);
  let rows = [], limit = 50;
  get("views").then(({ views: found }) => {
    const known = found.find((each) => each.name === name);
    if (!known) { fill(shown, empty("There is no such view")); return; }
    if (known.masked) limit = 500; // there is no next page of a key that is hidden
    else for (const key of known.keys) { const input = h("input", { size: 16, placeholder: "all" }); keys.push(input); fields.append(h("label", {}, key, input)); }
    fields.append(h("label", {}, "Order by", order), known.has_history ? h("label", {}, "As of (your time)", at) : "", h("button", { type: "submit", class: "primary" }, "Look"), h("label", { class: "check" }, follow, "follow changes"));
    load();
  }, (error) => fill(shown, failure(error)));

  async function load(after) {
    const given = keys.map((each) => each.value), isKey = given.some(Boolean);
    try {
      const found = await get("view", { name, key: isKey ? given : [], after: after ?? [], order: isKey ? "" : order.value, at: at.value ? new Date(at.value).toISOString() : "", limit });
      rows = after ? [...rows, ...found.rows] : found.rows;
      const names = rows.length ? Object.keys(rows[0]) : [];
      const columns = names.map((each) => ({ label: each, cell: (row) => (isTime(row[each]) ? time(row[each], true) : spelled(row[each])), sig: (row) => spelled(row[each]), num: typeof rows[0][each] === "number", sort: (row) => row[each], name: found.keys.includes(each) }));
      fill(shown, table(name, columns, (row) => JSON.stringify(row), empty("No row of this key", "The flow has written none, or it was deleted.")).update(rows));
      put(said, `${number(rows.length)} rows`);
      fill(foot, found.next ? h("button", { type: "button", onclick: () => load(found.next) }, "More") : null);
      foot.hidden = !foot.children.length;
    } catch (error) { fill(shown, failure(error)); }
  }
  return { nodes: [box], close() { clearInterval(timer); } };
}

const isTime = (value) => typeof value === "string" && /^\d{4}-\d\d-\d\dT\d\d:\d\d/.test(value);
const spelled = (value) => (value === null || value === undefined ? "–" : typeof value === "object" ? JSON.stringify(value) : String(value));
