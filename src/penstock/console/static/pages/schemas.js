// Schemas: subjects and their versions, what each version changed, and a check before one is registered.
import { get } from "../api.js";
import { dialogue } from "../action.js";
import { empty, failure, fill, h, panel } from "../dom.js";
import { number } from "../format.js";
import { table } from "../table.js";

export function schemas() {
  const filter = h("input", { class: "filter", type: "search", placeholder: "Filter by name  ( / )", "aria-label": "Filter subjects by name" });
  const list = table("Subjects", [
    { label: "Subject", name: true, sort: (row) => row.subject, cell: (row) => h("a", { href: `#/schemas/${encodeURIComponent(row.subject)}` }, row.subject), sig: (row) => row.subject },
    { label: "Type", cell: (row) => row.type, sort: (row) => row.type },
    { label: "Versions", num: true, sort: (row) => row.versions, cell: (row) => number(row.versions) },
    { label: "Newest id", num: true, sort: (row) => row.id, cell: (row) => number(row.id), wide: true },
    { label: "Compatibility", cell: (row) => row.mode, wide: true },
  ], (row) => row.subject, empty("No schemas yet", "A topic with format=\"avro\" registers its schema with the first event; or register one by hand.", "penstock schemas register orders-value order.avsc"));
  const box = panel("Subjects", list), problem = h("div");
  const button = h("button", { type: "button", onclick: () => register("", load) }, "Register …");
  box.head.append(h("span", { class: "spacer" }), filter, button);
  let found = [];
  const draw = () => list.update(found.filter((each) => each.subject.toLowerCase().includes(filter.value.toLowerCase().trim())));
  filter.addEventListener("input", draw);
  async function load() {
    try { found = (await get("subjects")).subjects; fill(problem); draw(); } catch (error) { fill(problem, failure(error)); }
  }
  load();
  return { nodes: [problem, box] };
}

export function subject(name) {
  const box = h("div", { class: "row" }), problem = h("div");
  async function load() {
    try {
      const found = await get("subject", { name });
      fill(problem);
      fill(box, [...found.versions].reverse().map((each) => version(each, found)));
    } catch (error) { fill(problem, failure(error)); }
  }
  load();
  const bar = h("div", {}, h("button", { type: "button", onclick: () => register(name, load) }, "Check and register a new version …"));
  return { nodes: [problem, bar, box] };
}

function version(each, found) {
  const tone = (line) => (line.startsWith("+") ? "diff-add" : line.startsWith("-") ? "diff-del" : line.startsWith("@") ? "diff-at" : null);
  const diff = each.diff.length ? h("pre", { class: "text", tabindex: 0 }, each.diff.map((line) => h("span", { class: tone(line) }, `${line}\n`))) : null;
  const whole = h("pre", { class: "text", tabindex: 0 }, each.text);
  const node = panel(`Version ${each.version}`, diff ? [h("p", { class: "body note" }, `what it changed of version ${each.version - 1}`), diff, h("details", { class: "body" }, h("summary", {}, "The whole schema"), whole)] : whole);
  node.head.append(h("span", { class: "badge" }, each.type), h("span", { class: "note spacer" }, `id ${each.id} · ${found.mode}`));
  return node;
}

function register(name, done) {
  const subject = h("input", { value: name, placeholder: "orders-value" }), type = h("select", {}, ["AVRO", "JSON", "PROTOBUF"].map((each) => h("option", { value: each }, each)));
  const text = h("textarea", { "aria-label": "Schema", placeholder: '{"type": "record", …}' });
  const inside = h("div", { class: "inside" }, h("div", { class: "fields" }, h("label", {}, "Subject", subject), h("label", {}, "Type", type)), text);
  dialogue({ title: "Check and register a schema", action: "schema.register", inside, values: () => ({ subject: subject.value, type: type.value, text: text.value }), verb: "Register", done });
}
