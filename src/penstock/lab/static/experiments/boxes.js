// A stage: boxes with links between them, along which dots move; each dot is an event that has happened.
import { h, put, svg } from "/static/dom.js";

const MOST = 160; // dots at once; more of them could not be distinguished
const still = matchMedia("(prefers-reduced-motion: reduce)");

export function stage(label, style) {
  const lines = svg("svg", { class: "stage-lines", "aria-hidden": "true" });
  const node = h("div", { class: "stage", role: "group", "aria-label": label }, lines);
  const links = new Map(), dots = new Set();
  let frame = 0;
  const watcher = new ResizeObserver(() => lay(node, lines, links));
  watcher.observe(node);
  dressed("boxes");
  dressed(style);

  function step(now) {
    for (const dot of dots) if (!moved(dot, now)) { dot.node.remove(); dots.delete(dot); }
    frame = dots.size ? requestAnimationFrame(step) : 0;
  }

  return {
    node,
    join(name, from, to, kind = "") {
      const path = svg("path", { class: `stage-link ${kind}` });
      lines.append(path);
      links.set(name, { path, from, to });
      watcher.observe(from);
    },
    unjoin(name) { links.get(name)?.path.remove(); links.delete(name); },
    has: (name) => links.has(name),
    lay: () => lay(node, lines, links),
    send(name, kind = "", { ms = 600, delay = 0 } = {}) {
      const link = links.get(name);
      if (!link || still.matches || dots.size >= MOST || document.hidden) return;
      const dot = svg("circle", { class: `stage-dot ${kind}`, r: 5 });
      dot.setAttribute("visibility", "hidden");
      lines.append(dot);
      dots.add({ node: dot, link, began: performance.now() + delay, ms });
      frame ||= requestAnimationFrame(step);
    },
    close() { watcher.disconnect(); cancelAnimationFrame(frame); dots.clear(); },
  };
}

function moved(dot, now) {
  const share = (now - dot.began) / dot.ms;
  if (share >= 1) return false;
  if (share < 0 || !dot.link.length) return true;
  const at = dot.link.path.getPointAtLength(dot.link.length * share);
  dot.node.setAttribute("cx", at.x);
  dot.node.setAttribute("cy", at.y);
  dot.node.removeAttribute("visibility");
  return true;
}

function lay(node, lines, links) {
  const frame = node.getBoundingClientRect();
  lines.setAttribute("viewBox", `0 0 ${frame.width} ${frame.height}`);
  for (const link of links.values()) {
    link.path.setAttribute("d", between(link.from.getBoundingClientRect(), link.to.getBoundingClientRect(), frame));
    link.length = link.path.getTotalLength();
  }
}

// From edge to edge: to the side where there is room between the two, and downwards otherwise.
function between(from, to, frame) {
  const middle = (one) => [one.left + one.width / 2 - frame.left, one.top + one.height / 2 - frame.top];
  const [fx, fy] = middle(from), [tx, ty] = middle(to);
  if (to.left >= from.right || from.left >= to.right) {
    const right = to.left >= from.right;
    const x = (right ? from.right : from.left) - frame.left, end = (right ? to.left : to.right) - frame.left;
    const half = (x + end) / 2;
    return `M${x},${fy}C${half},${fy} ${half},${ty} ${end},${ty}`;
  }
  const down = to.top >= from.bottom;
  const y = (down ? from.bottom : from.top) - frame.top, end = (down ? to.top : to.bottom) - frame.top;
  const half = (y + end) / 2;
  return `M${fx},${y}C${fx},${half} ${tx},${half} ${tx},${end}`;
}

export function box(title, kind, ...children) {
  return h("section", { class: `stage-box ${kind}`, "aria-label": title }, h("h3", {}, title), ...children);
}

// A figure as the experiment has it, spelled for people; its value is beside the text.
export function figure(name, spelled = String) {
  const node = h("span", { class: "figure", "data-figure": name, "data-value": "" }, "–");
  node.draw = (figures) => {
    const value = figures[name];
    const missing = value === undefined || value === null;
    put(node, missing ? "–" : spelled(value));
    node.setAttribute("data-value", missing ? "" : String(value));
  };
  return node;
}

// A line of figures with their names; draws all of them.
export function facts(...rows) {
  const drawn = rows.map(([, each]) => each);
  const node = h("dl", { class: "stage-facts" }, rows.map(([label, each]) => h("div", {}, h("dt", {}, label), h("dd", {}, each))));
  node.draw = (figures) => drawn.forEach((each) => each.draw(figures));
  return node;
}

export const milliseconds = (value) => (value >= 10_000 ? `${Math.round(value / 1000)} s` : value >= 1000 ? `${(value / 1000).toFixed(1)} s` : value >= 10 ? `${Math.round(value)} ms` : `${value.toFixed(1)} ms`);

// The style sheet of a picture, once.
function dressed(name) {
  const href = `/static/lab/experiments/${name}.css`;
  if (name && !document.head.querySelector(`link[href="${href}"]`)) document.head.append(h("link", { rel: "stylesheet", href }));
}
