// A canvas on which a picture moves: sharp on every screen, in the theme's colours, and still if that is wanted.
import { h } from "/static/dom.js";

const calm = matchMedia("(prefers-reduced-motion: reduce)");

// `paint({ctx, width, height, color, step, isCalm})` is called for each picture; `step` is in seconds.
export function stage(height, label, paint) {
  const node = h("canvas", { class: "lab-canvas", role: "img", "aria-label": label });
  const ctx = node.getContext("2d");
  let isClosed = false, before = performance.now(), colors = {}, theme = null;
  node.style.height = `${height}px`;

  const color = (name) => (colors[name] ??= getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim() || "#888");

  function draw(now) {
    if (document.documentElement.dataset.theme !== theme) { theme = document.documentElement.dataset.theme; colors = {}; }
    const ratio = devicePixelRatio || 1, width = node.clientWidth;
    if (width && (node.width !== Math.round(width * ratio) || node.height !== Math.round(height * ratio))) { node.width = Math.round(width * ratio); node.height = Math.round(height * ratio); }
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    ctx.clearRect(0, 0, width, height);
    ctx.font = "12px system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', 'DejaVu Sans', sans-serif";
    ctx.textBaseline = "middle";
    if (width) paint({ ctx, width, height, color, step: Math.min(0.1, Math.max(0, now - before) / 1000), isCalm: calm.matches });
    before = now;
  }
  function turn(now) {
    if (isClosed) return;
    if (node.isConnected) draw(now);
    if (!calm.matches) requestAnimationFrame(turn);
    else setTimeout(() => turn(performance.now()), 250);
  }
  requestAnimationFrame(turn);
  return { node, describe: (text) => { if (node.getAttribute("aria-label") !== text) node.setAttribute("aria-label", text); }, close() { isClosed = true; } };
}

// Moves a value towards another one, so that what jumps eight times a second glides.
export function eased(value, wanted, step, isCalm, speed = 9) {
  return isCalm || Math.abs(wanted - value) < 1e-6 ? wanted : value + (wanted - value) * Math.min(1, step * speed);
}

export function rounded(ctx, x, y, width, height, radius = 5) {
  ctx.beginPath();
  ctx.roundRect(x, y, Math.max(0, width), height, Math.min(radius, Math.max(0, width) / 2));
}

// Texts between commas, in the words of the page.
export const percent = (value) => (value === null || value === undefined ? "–" : `${(value * 100).toFixed(1)} %`);
export const milliseconds = (value) => (value === null || value === undefined ? "–" : value < 10 ? `${value.toFixed(1)} ms` : value < 10_000 ? `${Math.round(value).toLocaleString("en")} ms` : `${(value / 1000).toFixed(1)} s`);
