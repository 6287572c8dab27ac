// Sliders, choices and buttons, made of their descriptions.
import { h, put } from "/static/dom.js";
import { session } from "/static/api.js";

const TENTHS = new Intl.NumberFormat("en", { maximumFractionDigits: 2 });

export function controls(experiment, steered) {
  const made = experiment.controls.map((each) => MAKE[each.kind](each, steered));
  const knobs = made.filter((each) => each.name), buttons = made.filter((each) => !each.name);
  const row = buttons.length ? h("div", { class: "lab-buttons" }, buttons.map((each) => each.node)) : null;
  return {
    node: h("div", { class: "body lab-controls" }, knobs.map((each) => each.node), row, made.length ? null : h("p", { class: "note" }, "Nothing to set.")),
    values: () => Object.fromEntries(knobs.map((each) => [each.name, each.value()])),
    show(isAtWork, values) {
      for (const each of made) each.show(isAtWork, values);
    },
  };
}

const MAKE = {
  slider(found, steered) {
    const id = `knob-${found.name}`, said = h("output", { class: "lab-value", for: id }), note = later(found);
    const input = h("input", { type: "range", id, min: found.least, max: found.most, step: found.step, value: found.value });
    const spell = () => { const text = `${TENTHS.format(Number(input.value))}${found.unit ? ` ${found.unit}` : ""}`; put(said, text); input.setAttribute("aria-valuetext", text); };
    const knob = movable(found, input, () => Number(input.value), steered, note);
    input.addEventListener("input", spell);
    spell();
    return { ...knob, node: h("div", { class: "lab-knob" }, h("label", { for: id }, found.label), said, input, note), show(isAtWork, values) { knob.show(isAtWork, values); spell(); } };
  },
  choice(found, steered) {
    const id = `knob-${found.name}`, note = later(found);
    const input = h("select", { id }, found.options.map((each) => h("option", { value: each, selected: each === found.value }, each)));
    return { ...movable(found, input, () => input.value, steered, note), node: h("div", { class: "lab-knob" }, h("label", { for: id }, found.label), input, note) };
  },
  button(found, steered) {
    const node = h("button", { type: "button", class: found.is_danger ? "danger" : null, disabled: true, "data-button": found.name, onclick: () => steered.press(found.name) }, found.label);
    return { node, show(isAtWork) { node.disabled = !isAtWork || session.read_only; } };
  },
};

const later = (found) => (found.is_live ? null : h("span", { class: "lab-later", hidden: true }, "from the next start on"));

// What is live is sent while it is moved, a few times a second; other browsers' moves are shown unless it is held.
function movable(found, input, value, steered, note) {
  let isAtWork = false, moved = 0, timer = null, running = null;
  const send = () => { timer = null; steered.change({ [found.name]: value() }); };
  input.addEventListener("input", () => {
    moved = Date.now();
    if (found.is_live && isAtWork && !session.read_only) timer ??= setTimeout(send, 150);
    mark();
  });
  const mark = () => { if (note) note.hidden = !isAtWork || running === null || String(running) === String(value()); };
  return {
    name: found.name,
    value,
    show(at_work, values) {
      const began = at_work && !isAtWork;
      isAtWork = at_work;
      running = values ? values[found.name] : null;
      const isHeld = Date.now() - moved < 1500;
      if (at_work && values && (began || found.is_live) && !isHeld && String(value()) !== String(running)) input.value = running;
      mark();
    },
  };
}
