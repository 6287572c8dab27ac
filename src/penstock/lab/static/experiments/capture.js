// Experiment 5: the table, its three captured copies, and the cache that the application writes by itself.
import { h, put } from "/static/dom.js";
import { number } from "/static/format.js";
import { box, facts, figure, milliseconds, stage } from "./boxes.js";

const COPIES = [["index", "Search index", "flow"], ["cache", "Cache", "target"], ["lake", "Lake", "group"]];
const RED = 3; // seconds out of date from which on a row is red, beyond the pause of the lake

export function picture() {
  const shown = stage("The table and its copies", "capture");
  const table = box("PostgreSQL: items", "capture", h("p", { class: "note" }, "Writers A and B change rows; each cell is a row with its version."));
  const log = box("Topic", "topic", h("p", { class: "note" }, "Every commit, once, in order."));
  const rows = cells("rows of the table"), changes = facts(["changes committed", figure("changes", number)]);
  table.append(rows.node, changes);
  const applied = facts(["changes seen by the index", figure("index_applied", number)]);
  log.append(applied);
  const copies = COPIES.map(([name, title, kind]) => copy(name, title, kind));
  const own = ownCache();
  const right = h("div", { class: "capture-copies" }, copies.map((each) => each.node));
  shown.node.classList.add("capture-stage");
  shown.node.append(h("div", { class: "capture-left" }, table, own.node), log, right);
  shown.join("table", table, log);
  for (const each of copies) shown.join(each.name, log, each.node);
  shown.join("own", table, own.node, "weak");

  function draw(frame) {
    const found = frame.figures, lake = frame.values.lake ?? 1;
    rows.draw((found.table ?? []).map((version) => [version, 0]), RED);
    for (const each of [changes, applied, own, ...copies]) each.draw(found, lake);
    for (const event of frame.events) move(event);
  }
  function move(event) {
    if (event.copy === "table") { rows.flash(event.id); shown.send("table", "capture", { ms: 350 }); return; }
    if (event.copy === "own") { shown.send("own", event.failed ? "bad" : event.crossed ? "warn" : "ok"); return; }
    shown.send(event.copy, COPIES.find(([name]) => name === event.copy)?.[2], { delay: 300, ms: 450 });
  }
  return { node: shown.node, draw, close: shown.close };
}

function copy(name, title, kind) {
  const grid = cells(`rows of ${title}`), state = figure(`${name}_differ`);
  const lines = facts(["lag (median)", figure(`${name}_lag`, milliseconds)], ["worst", figure(`${name}_worst`, milliseconds)], ["rows that differ", state]);
  const node = box(title, kind, grid.node, lines);
  return {
    name, node,
    draw(found, lake) {
      grid.draw(found[`${name}_rows`] ?? [], RED + (name === "lake" ? lake : 0));
      lines.draw(found);
    },
  };
}

function ownCache() {
  const grid = cells("rows of the application's own cache"), differ = figure("own_differ", number), away = h("p", { class: "note" });
  const lines = facts(["rows that differ", differ], ["for up to", figure("own_stale", (value) => `${Math.round(value)} s`)], ["second writes failed", figure("failed", number)], ["overwritten by an older version", figure("crossed", number)]);
  const node = box("Own cache: dual writes", "bad", h("p", { class: "note" }, "The application writes it by itself after each commit: two writes, no common transaction."), away, grid.node, lines);
  return {
    node,
    draw(found) {
      away.hidden = !found.redis || found.redis === "yes";
      put(away, found.redis === "yes" ? "" : found.redis ?? "");
      grid.draw(found.own_rows ?? [], RED);
      lines.draw(found);
      differ.classList.toggle("bad", found.own_differ > 0 && found.own_stale > RED);
    },
  };
}

// A row is a cell: as the table has it, behind for a moment, or out of date for longer than that.
function cells(label) {
  const node = h("div", { class: "capture-cells", role: "img", "aria-label": label }), drawn = [];
  return {
    node,
    draw(rows, limit) {
      while (drawn.length < rows.length) { drawn.push(h("span")); node.append(drawn.at(-1)); }
      rows.forEach(([version, age], at) => {
        put(drawn[at], version);
        drawn[at].classList.toggle("late", age > 0 && age <= limit);
        drawn[at].classList.toggle("wrong", age > limit);
      });
      const wrong = rows.filter(([, age]) => age > limit).length;
      node.setAttribute("aria-label", `${label}: ${rows.length}, of which ${wrong} are out of date for longer than ${Math.round(limit)} seconds`);
    },
    flash(at) {
      const cell = drawn[at];
      if (!cell || !cell.animate || matchMedia("(prefers-reduced-motion: reduce)").matches) return;
      cell.animate([{ outline: "2px solid var(--capture)" }, { outline: "2px solid transparent" }], 500);
    },
  };
}
