// Small charts of numbers over time, drawn as SVG.
import { h, put, svg } from "./dom.js";

const WIDE = 100, HIGH = 30;

function paths(values) {
  const most = Math.max(1e-9, ...values), step = WIDE / Math.max(1, values.length - 1);
  const points = values.map((value, n) => `${(n * step).toFixed(2)},${(HIGH - 1 - (value / most) * (HIGH - 4)).toFixed(2)}`);
  return points.length < 2 ? ["", ""] : [`M${points.join("L")}`, `M0,${HIGH}L${points.join("L")}L${WIDE},${HIGH}Z`];
}

function drawing(kind, label) {
  const area = svg("path", { class: "area" }), line = svg("path", { class: "line" });
  const node = svg("svg", { class: kind, viewBox: `0 0 ${WIDE} ${HIGH}`, preserveAspectRatio: "none", role: "img", "aria-label": label }, area, line);
  node.draw = (values, said) => {
    const [path, under] = paths(values);
    line.setAttribute("d", path);
    area.setAttribute("d", under);
    node.classList.toggle("flat", !values.some(Boolean));
    if (said) node.setAttribute("aria-label", said);
  };
  return node;
}

export function spark(values = [], label = "trend") {
  const node = drawing("spark", label);
  node.draw(values);
  return node;
}

export function chart(label, spelled) {
  const drawn = drawing("chart", label), value = h("div", { class: "value" }), most = h("span", { class: "max" });
  const card = h("div", { class: "chart-card" }, h("div", { class: "label" }, h("span", {}, label), most), value, drawn);
  card.show = (values, now) => {
    const last = now ?? values.at(-1);
    put(value, last === undefined || last === null ? "–" : spelled(last));
    put(most, values.length > 1 ? `max ${spelled(Math.max(...values))}` : "");
    drawn.draw(values, `${label}: ${value.textContent}, ${most.textContent}`);
  };
  return card;
}
