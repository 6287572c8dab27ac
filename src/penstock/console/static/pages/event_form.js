// A form for an event, made from the schema of its class; what has more depth is written as JSON.
import { act, session } from "../api.js";
import { failure, fill, h } from "../dom.js";

export function form(topic, schema) {
  const fields = Object.entries(schema.properties ?? {}).map(([name, given]) => field(name, given, schema));
  const said = h("div", { class: "wide-field", "aria-live": "polite" });
  const check = h("button", { type: "button", onclick: () => run(true) }, "Check"), send = h("button", { type: "submit", class: "primary", disabled: session.read_only }, "Produce");
  const box = h("form", { class: "form", onsubmit: (event) => { event.preventDefault(); run(false); } }, fields.map((each) => each.node), h("div", { class: "fields wide-field" }, check, send, session.read_only ? h("span", { class: "note" }, "read-only") : null), said);

  async function run(dry) {
    try {
      const event = Object.fromEntries(fields.map((each) => each.read()).filter(Boolean));
      const found = await act("topic.send", dry, { topic, event });
      fill(said, h("div", { class: dry ? "note" : "done" }, found.summary));
    } catch (error) { fill(said, failure(error)); }
  }
  return box;
}

function field(name, given, schema) {
  const kind = resolved(given, schema), isMade = schema.made.includes(name), isNeeded = schema.required.includes(name);
  const hint = isMade ? "made if empty" : isNeeded ? kind.type ?? "" : kind.default !== undefined && kind.default !== null ? `or ${JSON.stringify(kind.default)}` : "may be empty";
  const input = kind.enum ? h("select", {}, isNeeded ? null : h("option", { value: "" }, ""), kind.enum.map((each) => h("option", { value: JSON.stringify(each) }, each)))
    : kind.type === "boolean" ? h("select", {}, ["", "true", "false"].map((each) => h("option", { value: each }, each)))
      : h("input", { placeholder: hint, type: kind.type === "integer" ? "number" : "text", step: kind.type === "integer" ? 1 : null, inputmode: kind.type === "number" ? "decimal" : null });
  return {
    node: h("label", {}, h("span", {}, name, isNeeded ? " *" : ""), input),
    read() {
      if (input.value === "") return isNeeded && kind.type === "string" ? [name, ""] : null;
      return [name, value(input.value, kind)];
    },
  };
}

function value(text, kind) {
  if (kind.enum) return JSON.parse(text);
  if (["integer", "number", "boolean", "object", "array"].includes(kind.type)) {
    try { return JSON.parse(text); } catch { return text; }
  }
  return text;
}

// A field that may be null is shown as what else it may be.
function resolved(given, schema) {
  const options = given.anyOf?.filter((each) => each.type !== "null");
  const kind = options?.length ? { default: given.default, ...options[0] } : given;
  const other = kind.$ref && schema.others[kind.$ref];
  return other ? { default: given.default, ...other } : kind;
}
