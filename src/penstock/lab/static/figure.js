// A figure of a run: its name is in data-figure and its value in data-value, so that tests can compare it.
import { h, put } from "/static/dom.js";
import { number } from "/static/format.js";

export function figure(name, label, spelled = number, tone = "") {
  const value = h("span", { class: "lab-figure-value", "data-figure": name }, "–"), more = h("span", { class: "lab-figure-more" });
  const node = h("div", { class: `lab-figure ${tone}` }, h("span", { class: "lab-figure-label" }, label), value, more);
  node.show = (found, note = "") => {
    mark(value, found);
    put(value, found === null || found === undefined ? "–" : spelled(found));
    put(more, note);
    return node;
  };
  return node;
}

// Marks a text of one's own as the figure that it shows.
export function mark(node, found) {
  const value = found === null || found === undefined ? "" : String(found);
  if (node.dataset.value !== value) node.dataset.value = value;
  return node;
}

export function figures(...nodes) {
  return h("div", { class: "lab-figures" }, nodes);
}
