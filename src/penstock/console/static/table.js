// A table whose rows are kept by their key: an update changes only what is another text.
import { empty, h, put } from "./dom.js";

// A column: {label, cell(row) -> text or node, sig(row) for nodes, sort(row), num, wide, name}
export function table(label, columns, key, nothing) {
  const heads = columns.map((column) => head(column, () => turn(column)));
  const body = h("tbody"), rows = new Map();
  const grid = h("table", { "aria-label": label }, h("thead", {}, h("tr", {}, heads)), body);
  const box = h("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": label }, grid);
  let order = null, last = [];

  function turn(column) {
    order = order?.column === column ? { column, down: !order.down } : { column, down: Boolean(column.num) };
    columns.forEach((each, n) => {
      if (each === column) heads[n].setAttribute("aria-sort", order.down ? "descending" : "ascending");
      else heads[n].removeAttribute("aria-sort");
    });
    box.update(last);
  }

  box.update = (found) => {
    last = found;
    const sorted = order ? [...found].sort(comparing(order)) : found;
    const wanted = new Set();
    sorted.forEach((row, place) => {
      const id = key(row);
      wanted.add(id);
      if (!rows.has(id)) rows.set(id, line(columns));
      rows.get(id).show(row);
      if (body.children[place] !== rows.get(id)) body.insertBefore(rows.get(id), body.children[place] ?? null);
    });
    for (const [id, each] of rows) if (!wanted.has(id)) { each.remove(); rows.delete(id); }
    grid.hidden = !found.length;
    if (!found.length && !box.none) box.append(box.none = nothing ?? empty("Nothing here yet"));
    if (box.none) box.none.hidden = Boolean(found.length);
    return box;
  };
  return box;
}

function head(column, click) {
  const classes = [column.num ? "num" : "", column.wide ? "wide" : ""].join(" ").trim();
  return h("th", { scope: "col", class: classes || null }, column.sort ? h("button", { type: "button", onclick: click }, column.label) : column.label);
}

function line(columns) {
  const cells = columns.map((column) => h("td", { class: [column.num ? "num" : "", column.wide ? "wide" : "", column.name ? "name" : ""].join(" ").trim() || null }));
  const row = h("tr", {}, cells);
  const shown = columns.map(() => undefined);
  row.show = (value) => columns.forEach((column, n) => {
    const found = column.sig ? column.sig(value) : column.cell(value);
    if (shown[n] === found) return;
    shown[n] = found;
    const content = column.sig ? column.cell(value) : found;
    if (content instanceof Node) cells[n].replaceChildren(content);
    else put(cells[n], content);
  });
  return row;
}

const comparing = ({ column, down }) => (one, other) => {
  const a = column.sort(one), b = column.sort(other);
  const less = typeof a === "string" ? a.localeCompare(b) : (a ?? -1) - (b ?? -1);
  return down ? -less : less;
};
