// The lab: its experiments at a glance, and one of them with its picture, its controls and what it is about.
import { get, session, stream } from "/static/api.js";
import { failure, fill, h, panel, put, setPill } from "/static/dom.js";
import { seconds } from "/static/format.js";
import { cardPicture } from "./cards.js";
import { code } from "./code.js";
import { controls } from "./controls.js";
import { steering } from "./steering.js";

const STATES = { idle: ["off", "not running"], running: ["running", "running"], stopping: ["waiting", "cleaning up"], done: ["ok", "done"], over: ["off", "its time is over"], stopped: ["off", "stopped"], failed: ["failed", "failed"] };
const IS_AT_WORK = (frame) => frame.state === "running" || frame.state === "stopping";
const isCalm = matchMedia("(prefers-reduced-motion: reduce)");
let described = null;

document.head.append(h("link", { rel: "stylesheet", href: "/static/lab/lab.css" }));

async function experiments() {
  described ??= (await get("lab/experiments")).experiments;
  return described;
}

export function make() {
  const cards = h("div", { class: "lab-cards" }), running = new Map();
  const intro = h("p", { class: "lab-intro" }, "Each experiment runs on the real platform: a real Kafka, PostgreSQL and Spark. What moves in a picture is an event, and each number is counted. One experiment runs at a time, and leaves nothing behind.");
  experiments().then((all) => fill(cards, all.map((each, n) => card(each, n, running)))).catch((error) => fill(cards, failure(error)));
  const close = stream("lab/live", (frame) => {
    for (const [id, note] of running) note.hidden = !(IS_AT_WORK(frame) && frame.experiment === id);
  });
  return { nodes: [intro, cards], close };
}

function card(experiment, n, running) {
  const note = h("span", { class: "pill ok", hidden: true }, "running");
  running.set(experiment.id, note);
  return h("a", { class: "lab-card", href: `#/lab/${experiment.id}` }, cardPicture(experiment.id), h("div", { class: "lab-card-text" }, h("h2", {}, h("span", { class: "lab-number", "aria-hidden": "true" }, n + 1), experiment.title, note), h("p", {}, experiment.question)));
}

export function one(id) {
  const box = h("div", { class: "stack" }), opened = { title: "", nodes: [box], close() { opened.isClosed = true; } };
  experiments().then((all) => {
    const found = all.find((each) => each.id === id);
    if (!found) throw new Error(`There is no experiment of this name.`);
    if (opened.isClosed) return;
    put(document.getElementById("title"), found.title);
    document.title = `${found.title} – Penstock`;
    const made = bench(found);
    fill(box, made.nodes);
    opened.close = made.close;
  }).catch((error) => fill(box, failure(error)));
  return opened;
}

// One experiment: the picture in the middle, and around it what every experiment has.
function bench(experiment) {
  const state = h("span", { class: "pill off", role: "status" }, "not running"), clock = h("span", { class: "note lab-clock" });
  const other = h("p", { class: "note", hidden: true }), trouble = h("div"), left = h("progress", { class: "lab-left", max: experiment.seconds, value: 0, "aria-label": "Time of this run" });
  const stage = h("div", { class: "lab-stage" }), lines = h("ol", { class: "lab-lines" }), steered = steering(experiment.id, trouble);
  const knobs = controls(experiment, steered);
  const start = h("button", { type: "button", class: "primary", onclick: () => steered.start(knobs.values()) }, "Start");
  const stop = h("button", { type: "button", disabled: true, onclick: () => steered.stop() }, "Stop");
  const calm = h("p", { class: "note", hidden: !isCalm.matches }, "Pictures move in steps, as your system asks for less motion.");
  let picture = null, drawn = null, module = null, last = null;

  import(`/static/lab/experiments/${experiment.id}.js`).then((found) => { module = found; show(null); if (last) take(last); }).catch((error) => fill(stage, failure(error)));

  function show(run) {
    picture?.close?.();
    picture = module.picture();
    drawn = run;
    fill(stage, picture.node);
  }

  function take(frame) {
    last = frame;
    const isMine = frame.experiment === experiment.id, isAtWork = isMine && IS_AT_WORK(frame);
    const [tone, words] = STATES[isMine ? frame.state : "idle"];
    setPill(state, tone, words);
    start.disabled = session.read_only || (isMine && frame.state === "stopping");
    put(start, isAtWork ? "Start again" : "Start");
    stop.disabled = session.read_only || !isAtWork || frame.state === "stopping";
    other.hidden = isMine || !IS_AT_WORK(frame);
    put(other, `Another experiment runs (${frame.experiment}); starting this one ends it.`);
    knobs.show(isAtWork, isMine ? frame.values : null);
    put(clock, isMine ? `${seconds(Math.round(frame.elapsed))} of ${seconds(experiment.seconds)}` : `ends by itself after ${seconds(experiment.seconds)}`);
    left.value = isMine ? frame.elapsed : 0;
    if (isMine && frame.trouble) fill(trouble, failure({ message: frame.trouble }));
    if (!isMine || !module) return;
    if (drawn !== frame.run) { if (drawn !== null) fill(trouble); show(frame.run); }
    protocol(lines, frame.lines);
    picture.draw(frame);
  }

  const close = stream("lab/live", take, () => { setPill(state, "unknown", "connecting"); });
  const stand = panel("The experiment", h("div", { class: "body lab-stand" }, stage));
  stand.head.append(state, clock, h("span", { class: "spacer" }), start, stop);
  stand.insertBefore(left, stand.children[1]);
  const own = panel("In your own pipeline", code(experiment.code), h("p", { class: "body note" }, "More in the docs: ", h("code", {}, `docs/${experiment.page}`)));
  const read = panel("What is behind it", h("div", { class: "body lab-text" }, experiment.explained.map((each) => h("p", {}, each))));
  const watch = panel("What to watch", h("ul", { class: "body lab-watch" }, experiment.watch.map((each) => h("li", {}, each))));
  const side = h("div", { class: "lab-side" }, panel("Controls", knobs.node), watch);
  const main = h("div", { class: "lab-main" }, stand);
  const nodes = [h("p", { class: "lab-question" }, experiment.question), session.read_only ? h("p", { class: "notice lab-notice" }, "This lab is read-only: you can look at what runs, and start nothing.") : null, trouble, other, calm, h("div", { class: "lab-bench" }, main, side), h("div", { class: "row" }, read, own), panel("Protocol", lines)];
  protocol(lines, []);
  return { nodes, close() { close(); picture?.close?.(); } };
}

function protocol(node, found) {
  const text = found.map((each) => `${each.at} ${each.text}`).join("\n");
  if (node.dataset.shown === text) return;
  node.dataset.shown = text;
  const rows = [...found].reverse().map((each) => h("li", {}, h("span", { class: "lab-at" }, `${each.at.toFixed(1)} s`), h("span", {}, each.text)));
  fill(node, rows.length ? rows : h("li", { class: "note" }, "What the experiment does is written down here."));
}
