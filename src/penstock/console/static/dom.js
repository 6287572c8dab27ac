// Elements made by hand: every value goes in as text, so nothing of an event can become markup.

const SVG = "http://www.w3.org/2000/svg";

export function h(tag, attributes = {}, ...children) {
  return made(document.createElement(tag), attributes, children);
}

export function svg(tag, attributes = {}, ...children) {
  return made(document.createElementNS(SVG, tag), attributes, children);
}

function made(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  add(node, children);
  return node;
}

export function add(node, children) {
  for (const child of children.flat(3)) {
    if (child === null || child === undefined || child === false) continue;
    node.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return node;
}

export function fill(node, ...children) {
  node.replaceChildren();
  return add(node, children);
}

// Sets a text only if it is another one, so that a selection lasts.
export function put(node, text) {
  const value = String(text);
  if (node.textContent !== value) node.textContent = value;
  return node;
}

export function retitle(text) {
  put(document.getElementById("title"), text);
  document.title = `${text} – Penstock`;
}

export function panel(title, ...children) {
  const head = h("header", {}, h("h2", {}, title));
  const box = h("section", { class: "panel", "aria-label": title }, head, children);
  box.head = head;
  return box;
}

export function pill(state, text) {
  return h("span", { class: `pill ${tone(state)}` }, text ?? state);
}

export function setPill(node, state, text) {
  node.className = `pill ${tone(state)}`;
  put(node, text ?? state);
}

const TONES = {
  ok: "ok", running: "ok", stable: "ok", done: "ok",
  warning: "warn", stalled: "bad", stopped: "bad", rewind: "bad", failed: "bad", error: "bad", silent: "bad",
  waiting: "warn", starting: "warn", paused: "warn", "not running": "bad", preparing_rebalance: "warn",
  completing_rebalance: "warn", lost: "bad",
};

export function tone(state) {
  return Object.hasOwn(TONES, state) ? TONES[state] : "off";
}

export function empty(title, hint, command) {
  return h("div", { class: "empty" }, h("strong", {}, title), hint ? h("span", {}, hint) : null, command ? h("code", {}, command) : null);
}

export function failure(error) {
  return h("div", { class: "failure", role: "alert" }, withCode(error.message), error.hint ? h("span", { class: "hint" }, "→ ", withCode(error.hint)) : null);
}

// A text in which commands stand between backticks.
export function withCode(text) {
  return text.split("`").map((part, n) => (n % 2 ? h("code", {}, part) : part));
}

export function tile(label, href) {
  const value = h("div", { class: "value" }), more = h("div", { class: "more" });
  const box = h(href ? "a" : "div", { class: "tile", href }, h("div", { class: "label" }, label), value, more);
  box.show = (text, note = "") => { put(value, text); value.classList.toggle("small", String(text).length > 14); put(more, note); };
  box.show("–");
  return box;
}
