// The versions of a flow (at work, in the shadow, kept), and what can be done with them.
import { state } from "../api.js";
import { dialogue } from "../action.js";
import { failure, fill, h, panel, pill } from "../dom.js";
import { commandLink, commandPill } from "./commands.js";

const ORDER = "A new version runs in the shadow of the one at work. Both are compared, then it is swapped in; the former one is kept.";

export function versions(label) {
  const rows = h("tbody"), buttons = h("div", { class: "fields body" }), notes = h("div", { class: "body stack" });
  const grid = h("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": "Versions" }, h("table", {}, h("thead", {}, h("tr", {}, ["Which", "Version", "Generation", "State"].map((each) => h("th", { scope: "col" }, each)))), rows));
  const box = panel("Versions", grid, buttons, notes);
  const drawn = [0, 1, 2].map(() => ({ sig: "" }));
  // Each part is drawn again only if it has changed: a button that is being pressed has to stay.
  const changed = (part, ...values) => { const sig = JSON.stringify(values); if (part.sig === sig) return false; part.sig = sig; return true; };
  box.update = (now) => {
    const [pipeline, flow] = find(now, label), known = flow?.versions, runs = now.commands.filter((each) => each.subject === label).slice(0, 3);
    const own = now.flows.filter((each) => each.label === label);
    if (changed(drawn[0], known, flow?.is_shadow_running, own.map((each) => [each.generation, each.version, each.state]))) fill(rows, lines(known, own, flow).map(([which, version, generation, said]) => h("tr", {}, h("td", { class: "name" }, which), h("td", {}, version || "–"), h("td", { class: "mono" }, generation || "–"), h("td", {}, said))));
    if (changed(drawn[1], known, flow?.is_shadow_running, pipeline?.modules)) fill(buttons, flow ? choices(pipeline, flow) : null);
    buttons.hidden = !buttons.children.length;
    if (changed(drawn[2], known, flow?.is_shadow_running, Boolean(pipeline?.process), runs.map((each) => [each.id, each.state]))) fill(notes, explained(pipeline, flow), runs.map((each) => h("p", { class: "note" }, commandPill(each), " ", commandLink(each))));
  };
  return box;
}

function find(now, label) {
  for (const pipeline of now.pipelines) for (const flow of pipeline.flows) if (flow.label === label) return [pipeline, flow];
  return [null, null];
}

function lines(known, own, flow) {
  const of = (generation) => own.find((each) => each.generation === generation);
  if (!known) return own.map((each) => [each.generation ? "generation" : "at work", each.version, each.generation, pill(each.state)]);
  const at = of(known.at_work), beside = of(known.shadow);
  return [
    ["At work", at?.version, known.at_work, at ? pill(at.state) : "has not run"],
    known.shadow !== null && ["In the shadow", known.shadow_version, known.shadow, flow.is_shadow_running ? pill("running") : beside ? pill(beside.state) : "has not run"],
    known.rebuild !== null && ["Being rebuilt", known.shadow_version, known.rebuild, "by penstock rebuild"],
    known.former !== null && ["Former", known.former_version, known.former, "kept for a rollback"],
  ].filter(Boolean);
}

function explained(pipeline, flow) {
  if (!pipeline) return h("p", { class: "note" }, "Start the console with the modules that declare it, of each version, and versions can be replaced from here: ", h("code", {}, "penstock console -m shop.py -m shop2.py"));
  const known = flow.versions;
  if (known?.interrupted) return failure({ message: `A ${known.interrupted} was begun and interrupted: the flow does not start before it is completed.`, hint: `complete it with the same ${known.interrupted}` });
  if (!known) return h("p", { class: "note" }, "Its checkpoints are not on this machine: which versions are there is seen when something is begun.");
  if (known.shadow === null) return h("p", { class: "note" }, ORDER);
  if (flow.is_shadow_running) return h("p", { class: "note" }, "Both may run while they are compared. For a swap, stop the shadow and the pipeline first.");
  return pipeline.process ? h("p", { class: "note" }, "For a swap, stop the pipeline first.") : null;
}

function choices(pipeline, flow) {
  const known = flow.versions, has = (name) => !known || known[name] !== null, isFree = !known?.interrupted && !known?.rebuild;
  const found = [], add = (text, make, primary) => found.push(h("button", { type: "button", class: primary ? "primary" : null, onclick: make }, `${text} …`));
  if (known?.interrupted) add(`Complete the ${known.interrupted}`, () => (known.interrupted === "rollback" ? rollback(pipeline, flow) : swap(pipeline, flow)), true);
  if (isFree && !flow.is_shadow_running) add(has("shadow") && known ? "Go on with the shadow" : "Run a shadow", () => shadow(pipeline, flow));
  if (isFree && flow.is_shadow_running) add("Stop the shadow", () => dialogue({ title: `Stop the shadow of ${flow.label}`, action: "pipeline.stop", inside: h("p", {}, "It ends with its batch, and goes on from there when it is run again."), values: () => ({ name: `${pipeline.name}.${flow.name}.shadow` }), verb: "Stop it" }));
  if (isFree && has("shadow")) add("Compare", () => compare(pipeline, flow));
  if (isFree && has("shadow")) add("Swap", () => swap(pipeline, flow));
  if (isFree && has("shadow")) add("Discard the shadow", () => discard(pipeline, flow));
  if (isFree && has("former") && (!known || known.shadow === null)) add("Roll back", () => rollback(pipeline, flow));
  return found;
}

// The module whose code is meant: a choice where several declare the pipeline.
function moduleField(pipeline, flow, version, isOther = false) {
  const names = Object.keys(pipeline.modules).filter((each) => Object.hasOwn(pipeline.modules[each], flow.name));
  const fits = (each) => (pipeline.modules[each][flow.name] === version) !== isOther;
  const field = h("select", {}, names.map((each) => h("option", { value: each }, `${each}, version ${pipeline.modules[each][flow.name]}`)));
  field.value = names.find(fits) ?? names[0];
  return field;
}

const named = (text, field, hint) => h("label", {}, text, field, hint ? h("span", { class: "hint" }, hint) : null);
const atWork = (flow) => state.snapshot.flows.find((each) => each.label === flow.label && each.generation === (flow.versions?.at_work ?? 0))?.version;

function shadow(pipeline, flow) {
  const known = flow.versions, isGoingOn = known && known.shadow !== null;
  const module = moduleField(pipeline, flow, isGoingOn ? known.shadow_version : atWork(flow), !isGoingOn), partial = h("input", { type: "checkbox" });
  const inside = h("div", { class: "stack" }, h("p", {}, "It reads the log from its beginning, into a table or a topic of its own, until it is stopped. The version at work is not touched."), h("div", { class: "form" }, named("Module of the new version", module)), h("label", { class: "note" }, partial, " do without events that are not in the log any more"));
  dialogue({ title: `Run ${flow.label} in the shadow`, action: "flow.shadow", inside, values: () => ({ pipeline: pipeline.name, flow: flow.name, module: module.value, partial: partial.checked }), verb: "Run it", eager: true });
}

function comparing(pipeline, flow) {
  const module = moduleField(pipeline, flow, flow.versions?.shadow_version), gate = h("input", { type: "number", min: 0, step: 1, placeholder: "no gate" });
  const by = h("input", { placeholder: "the target's own" }), ignore = h("input", { placeholder: "none" });
  const split = (text) => text.split(",").map((each) => each.trim()).filter(Boolean);
  const form = h("div", { class: "form" }, named("Module of the shadow", module), named("Gate: at most so many keys differ", gate), named("Key columns, with commas", by), named("Columns to leave out", ignore));
  const values = () => ({ pipeline: pipeline.name, flow: flow.name, module: module.value, by: split(by.value), ignore: split(ignore.value), ...(gate.value === "" ? {} : { at_most: Number(gate.value) }) });
  return [form, values];
}

function compare(pipeline, flow) {
  const [form, values] = comparing(pipeline, flow);
  dialogue({ title: `Compare the versions of ${flow.label}`, action: "flow.diff", inside: h("div", { class: "stack" }, h("p", {}, "Keys are counted that are the same, differ, or are on one side only, with examples. Nothing is changed; Spark takes a while."), form), values, verb: "Compare", eager: true });
}

function swap(pipeline, flow) {
  const [form, values] = comparing(pipeline, flow);
  dialogue({ title: `Swap the shadow of ${flow.label} in`, action: "flow.swap", inside: h("div", { class: "stack" }, h("p", {}, "The shadow is brought to the position of the version at work and takes its place there: no result is lost or doubled. With a gate, both are compared before."), form), values, verb: "Swap", danger: true, eager: true });
}

function discard(pipeline, flow) {
  const module = moduleField(pipeline, flow, flow.versions?.shadow_version);
  dialogue({ title: `Discard the shadow of ${flow.label}`, action: "flow.discard", inside: h("div", { class: "form" }, named("Module of the shadow", module)), values: () => ({ pipeline: pipeline.name, flow: flow.name, module: module.value }), verb: "Discard it", danger: true, eager: true });
}

function rollback(pipeline, flow) {
  const module = moduleField(pipeline, flow, flow.versions?.former_version);
  const inside = h("div", { class: "stack" }, h("p", {}, "The version before the last swap takes its place again, and goes on from where it stood, with the code of then. A rollback can be rolled back."), h("div", { class: "form" }, named("Module of the former version", module)));
  dialogue({ title: `Roll ${flow.label} back`, action: "flow.rollback", inside, values: () => ({ pipeline: pipeline.name, flow: flow.name, module: module.value }), verb: "Roll back", danger: true, eager: true });
}
