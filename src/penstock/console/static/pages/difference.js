// What two versions of a flow differ in: counts, the gate, and examples by key.
import { empty, h, panel, pill, tile } from "../dom.js";
import { number } from "../format.js";

// The gate of a command, as its line has it; null without one.
export function gateOf(line) {
  const found = /--at-most=(\d+)/.exec(line);
  return found ? Number(found[1]) : null;
}

export function differenceShown(found, gate) {
  const counts = [["Same", found.same, "keys"], ["Different", found.different, "keys of both"], ["Only at work", found.only_live, "keys"], ["Only in the shadow", found.only_shadow, "keys"], ["Windows", found.windows, "are concerned"]];
  const tiles = counts.filter(([, count]) => count !== null).map(([label, count, more]) => { const box = tile(label); box.show(number(count), more); return box; });
  const all = found.different + found.only_live + found.only_shadow;
  const judged = gate === null ? h("span", { class: "badge" }, "no gate") : all <= gate ? pill("ok", `within the gate of ${number(gate)}`) : pill("error", `beyond the gate of ${number(gate)}`);
  const apart = found.apart ? h("p", { class: "failure" }, `The two are ${number(found.apart)} events apart: a swap with a gate compares them at one position.`) : null;
  const box = panel("Keys that differ", found.examples.length ? h("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": "Examples by key" }, h("table", {}, h("thead", {}, h("tr", {}, ["Key", "How", "At work", "In the shadow"].map((each) => h("th", { scope: "col" }, each)))), h("tbody", {}, found.examples.map(example)))) : empty("No key differs", `${number(found.same)} keys are the same.`));
  box.head.append(judged, h("span", { class: "note spacer" }, `compared by ${found.key.join(", ") || "all columns"}${found.examples.length && found.examples.length < all ? `; the first ${found.examples.length} of ${number(all)}` : ""}`));
  return h("div", { class: "stack" }, apart, h("div", { class: "tiles" }, tiles), box);
}

function example(found) {
  if (typeof found === "string") return h("tr", {}, h("td", { colspan: 4 }, found)); // hidden
  const [live, shadow] = [parsed(found.live), parsed(found.shadow)];
  return h("tr", {}, h("td", { class: "top-cell mono name" }, spelled(parsed(found.key) ?? found.key)), h("td", { class: "top-cell nowrap" }, { "only in live": "only at work" }[found.kind] ?? found.kind), side(live, shadow, "diff-del"), side(shadow, live, "diff-add"));
}

// The columns of one side, those first that the other one has not, or has otherwise.
function side(own, other, mark) {
  if (!own) return h("td", { class: "top-cell dim" }, "–");
  const names = Object.keys(own), differs = (name) => !other || JSON.stringify(own[name]) !== JSON.stringify(other[name]);
  const shown = other ? [...names.filter(differs), ...names.filter((name) => !differs(name))] : names;
  return h("td", { class: "top-cell mono side-cell" }, shown.map((name) => h("div", { class: other && differs(name) ? mark : "dim" }, `${name} `, h("span", { class: "strong" }, text(own[name])))));
}

function parsed(value) {
  if (typeof value !== "string") return value;
  try { const found = JSON.parse(value); return found && typeof found === "object" && !Array.isArray(found) ? found : null; } catch { return null; }
}

const text = (value) => (typeof value === "string" ? value : JSON.stringify(value));
const spelled = (key) => (key && typeof key === "object" ? Object.entries(key).map(([name, value]) => h("div", {}, `${name} `, h("span", { class: "strong" }, text(value)))) : String(key));
