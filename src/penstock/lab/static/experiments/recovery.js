// A log, the flows that read it, and what has come of each event: the process in between is killed.
import { fill, h, put } from "/static/dom.js";
import { number, seconds } from "/static/format.js";
import { figure, figures, mark } from "../figure.js";
import { eased, rounded, stage } from "../stage.js";

const FLOWS = { guarantees: ["at-most-once", "at-least-once", "exactly-once"], steps: ["steps"] };
const WORDS = { "at-most-once": "at most once", "at-least-once": "at least once", "exactly-once": "exactly once", steps: "exactly once, through three steps" };
const INKS = { 1: "ok", 2: "warn", 0: "bad", ".": "line" };
const COUNTS = [["exact", "once", "ok"], ["doubled", "doubled", "warn"], ["lost", "lost", "bad"], ["waiting", "to come", ""]];
const TOP = 58, LANE = 66, CELL = 24, STEPS = 112, RIGHT = 6;

const scrolled = (label) => h("div", { class: "scroll", role: "region", tabindex: 0, "aria-label": label });

export function picture() {
  const dots = [], at = {};
  let found = {}, flash = 0, boundary = 0;
  const place = h("div");
  let strips = null;
  const wait = h("p", { class: "lab-wait", role: "status" }, "nothing runs yet");
  const sent = figure("sent", "Events in the log", number, "topic"), kills = figure("kills", "Killed with -9", number, "bad");
  const counts = scrolled("What came out of each flow"), lives = scrolled("Starts, with their costs and recoveries");
  const node = h("div", { class: "stack" }, wait, place, counts, figures(sent, kills), h("h3", { class: "lab-h3" }, "What the interval costs, and what it spares"), lives);
  let cells = null, shape = "";

  const flows = () => FLOWS[found.subject] ?? [];
  const key = (flow) => flow.replaceAll("-", "_");

  function paint({ ctx, width, color, step, isCalm }) {
    const numbers = found.numbers ?? [], room = width - RIGHT, shownFrom = 0, size = room / Math.max(80, numbers.length);
    const x = (n) => { let place = numbers.length; while (place > shownFrom && numbers[place - 1] >= n) place -= 1; return (place - shownFrom) * size; };
    flash = Math.max(0, flash - step * 0.9);
    paintLog(ctx, color, numbers, shownFrom, size);
    paintProcess(ctx, width, color);
    flows().forEach((flow, row) => paintLane(ctx, width, color, flow, laneTop(row), numbers, shownFrom, size, x, step, isCalm));
    if (found.subject === "steps") paintSteps(ctx, width, color, step, isCalm);
    paintDots(ctx, color, x);
    if (flash > 0) { ctx.globalAlpha = 0.28 * flash; ctx.fillStyle = color("bad"); ctx.fillRect(0, TOP, width, 4000); ctx.globalAlpha = 1; }
  }

  const laneTop = (row) => TOP + 40 + row * LANE + (found.subject === "steps" ? STEPS + 34 : 0);

  function paintLog(ctx, color, numbers, from, size) {
    ctx.textAlign = "left";
    ctx.fillStyle = color("ink");
    ctx.fillText("the log", 0, 9);
    ctx.fillStyle = color("muted");
    ctx.fillText(numbers.length ? `up to event ${number(numbers.at(-1))}; a cell is ${found.sample > 1 ? `one of ${number(found.sample)} events` : "an event"}` : "", 52, 9);
    numbers.slice(from).forEach((_, n) => { ctx.fillStyle = color("topic"); ctx.fillRect(n * size, 20, Math.max(1, size - 1), CELL); });
  }

  function paintProcess(ctx, width, color) {
    const tone = { working: "ok", starting: "warn", dead: "bad" }[found.process] ?? "off";
    ctx.fillStyle = color(`${tone}-soft`);
    rounded(ctx, 0, TOP, width, 24, 8);
    ctx.fill();
    ctx.fillStyle = color(tone);
    ctx.textAlign = "left";
    const words = { working: `the pipeline's process works, for ${seconds(Math.round(found.since_start))}`, starting: `the pipeline's process starts: ${seconds(Math.round(found.since_start))}`, dead: "the process is dead" }[found.process];
    ctx.fillText(words ?? "no process yet", 10, TOP + 12);
  }

  function paintLane(ctx, width, color, flow, top, numbers, from, size, x, step, isCalm) {
    const strip = found.strips?.[flow] ?? "", name = key(flow);
    ctx.textAlign = "left";
    ctx.fillStyle = color("ink");
    ctx.font = "600 12.5px system-ui, sans-serif";
    ctx.fillText(WORDS[flow], 0, top + 8);
    ctx.font = "12px system-ui, sans-serif";
    for (let n = from; n < numbers.length; n += 1) {
      const sign = strip[n] ?? ".", left = (n - from) * size;
      ctx.fillStyle = color(INKS[sign]);
      if (sign === "0") { ctx.fillRect(left, top + 18, Math.max(1, size - 1), CELL); ctx.fillStyle = color("panel"); ctx.fillRect(left + 1, top + 20, Math.max(0, size - 3), CELL - 4); }
      else if (sign === "2") { ctx.fillRect(left, top + 15, Math.max(1, size - 1), CELL / 2); ctx.fillRect(left, top + 16 + CELL / 2, Math.max(1, size - 1), CELL / 2); }
      else ctx.fillRect(left, top + 18, Math.max(1, size - 1), CELL);
    }
    const wanted = x(found[`${name}_mark`] ?? 0);
    at[flow] = eased(at[flow] ?? wanted, wanted, step, isCalm);
    ctx.fillStyle = color("flow");
    ctx.fillRect(at[flow] - 1, top + 14, 2.5, CELL + 12);
    const words = found[`${name}_batch`] === null || found[`${name}_batch`] === undefined ? "no checkpoint yet" : `checkpoint: batch ${number(found[`${name}_batch`])}, offset ${number(found[`${name}_position`])}`;
    const wide = ctx.measureText(words).width;
    ctx.textAlign = "right";
    ctx.fillText(words, Math.min(width - 2, Math.max(at[flow] - 6, wide)), top + CELL + 26);
  }

  // The boundary of a batch on its way: written down, through the three steps, and committed.
  function paintSteps(ctx, width, color, step, isCalm) {
    const steps = found.steps ?? [], planned = found.steps_planned_batch, done = found.steps_batch, top = TOP + 40;
    const stops = steps.length + 2, gap = width / stops, x = (n) => gap * (n + 0.5);
    const isOpen = planned !== null && planned !== undefined && planned !== done;
    const passed = steps.filter((each) => each.version > planned).length;
    const wanted = planned === null || planned === undefined ? 0 : isOpen ? passed : stops - 1;
    boundary = wanted < boundary - 0.5 && wanted === 0 ? 0 : eased(boundary, wanted, step, isCalm, 6);
    ctx.strokeStyle = color("line");
    ctx.lineWidth = 2;
    ctx.beginPath();
    ctx.moveTo(x(0), top + 52);
    ctx.lineTo(x(stops - 1), top + 52);
    ctx.stroke();
    const narrow = width < 560;
    const titles = ["plan", ...steps.map((each) => each.step), "commit"];
    const [offset, version, batch] = narrow ? ["", "v", ""] : ["offset ", "version ", "batch "];
    const notes = [offset + number(found.steps_planned), ...steps.map((each) => version + number(each.version)), done === null || done === undefined ? "–" : batch + number(done)];
    const more = ["", ...steps.map((each) => (each.rows === null || each.rows === undefined ? "" : `${number(each.rows)}${narrow ? "" : " rows"}`)), ""];
    titles.forEach((title, n) => {
      const isSaved = n > 0 && n <= steps.length ? steps[n - 1].version > (planned ?? Infinity) : n === 0 ? true : !isOpen;
      const wide = Math.min(gap - 10, 150);
      ctx.fillStyle = color(isSaved ? "flow" : "sunk");
      rounded(ctx, x(n) - wide / 2, top + 34, wide, 36, 8);
      ctx.fill();
      ctx.textAlign = "center";
      ctx.fillStyle = color(isSaved ? "panel" : "ink");
      ctx.fillText(notes[n], x(n), top + 52);
      ctx.fillStyle = color("ink");
      ctx.fillText(narrow && title.length > 9 ? `step ${n}` : title, x(n), top + 22);
      ctx.fillStyle = color("muted");
      ctx.fillText(more[n], x(n), top + 82);
    });
    ctx.fillStyle = color("capture");
    ctx.fillRect(Math.min(x(boundary) + gap / 2 - 2, width - 4), top + 28, 4, 48);
    ctx.textAlign = "left";
    ctx.fillText(planned === null || planned === undefined ? "no batch yet" : `the boundary of batch ${number(planned)}${isOpen ? " passes through" : " has passed"}`, 0, top + 102);
  }

  function paintDots(ctx, color, x) {
    const now = performance.now(), rows = flows();
    for (let n = dots.length - 1; n >= 0; n -= 1) {
      const dot = dots[n], age = (now - dot.born) / 520, row = rows.indexOf(dot.flow);
      if (age >= 1 || (dot.kind === "out" && row < 0)) { dots.splice(n, 1); continue; }
      const from = dot.kind === "in" ? 0 : 44, to = dot.kind === "in" ? 30 : laneTop(row) + 28;
      ctx.globalAlpha = 0.85;
      ctx.fillStyle = color(dot.kind === "in" ? "topic" : dot.again ? "warn" : "ok");
      ctx.beginPath();
      ctx.arc(x(dot.n) + 2, from + (to - from) * age, dot.again ? 3.6 : 2.4, 0, 7);
      ctx.fill();
      ctx.globalAlpha = 1;
    }
  }

  function table() {
    const names = flows();
    if (shape !== names.join()) {
      shape = names.join();
      cells = new Map();
      const cell = (name) => { const made = h("td", { class: "num" }, h("span", { "data-figure": name }, "–")); cells.set(name, made.firstChild); return made; };
      const head = h("tr", {}, h("th", { scope: "col" }, "Events"), COUNTS.map(([, words]) => h("th", { scope: "col", class: "num" }, words)));
      fill(counts, h("table", {}, h("thead", {}, head), h("tbody", {}, names.map((flow) => h("tr", {}, h("th", { scope: "row" }, flow === "steps" ? "exactly once" : WORDS[flow]), COUNTS.map(([count]) => cell(`${key(flow)}_${count}`)))))));
    }
    for (const [name, span] of cells) {
      const value = found[name];
      mark(span, value);
      put(span, number(value));
      const tone = COUNTS.find(([count]) => name.endsWith(`_${count}`))[2];
      span.className = value && (tone === "bad" || tone === "warn") ? `lab-count ${tone}` : "lab-count";
    }
  }

  function showLives() {
    const rows = found.lives ?? [], said = (value, spelled) => (value === null || value === undefined ? "–" : spelled(value));
    const head = ["Start", "Interval", "First batch", "Caught up", "Batches/min", "Overhead", "CPU"];
    const text = JSON.stringify(rows);
    if (lives.dataset.shown === text) return;
    lives.dataset.shown = text;
    fill(lives, h("table", {}, h("thead", {}, h("tr", {}, head.map((each, n) => h("th", { scope: "col", class: n > 1 ? "num" : "" }, each)))), h("tbody", {}, rows.map((each, n) => h("tr", {},
      h("td", { class: "nowrap" }, each.is_recovery ? `after kill ${n}` : "the first"), h("td", {}, seconds(each.interval)), h("td", { class: "num" }, said(each.first, seconds)), h("td", { class: "num" }, said(each.caught_up, seconds)),
      h("td", { class: "num" }, said(each.batches_a_minute, number)), h("td", { class: "num" }, said(each.overhead, (value) => `${value.toFixed(1)} s/min`)), h("td", { class: "num" }, said(each.cpu, (value) => `${value.toFixed(0)} s/min`)))))));
  }

  return {
    node,
    draw(frame) {
      found = frame.figures;
      if (!found.subject) return;
      for (const each of frame.events) {
        if (each.kind === "kill") flash = 1;
        else if (each.kind !== "batch") dots.push({ ...each, born: performance.now() });
      }
      if (dots.length > 300) dots.splice(0, dots.length - 300);
      if (!strips) {
        strips = stage(found.subject === "steps" ? TOP + STEPS + 74 + LANE : TOP + 40 + 3 * LANE, "The log, and what has become of each event", paint);
        fill(place, strips.node);
      }
      wait.hidden = found.process === "working";
      put(wait, found.process === "starting" ? `Spark is starting: ${seconds(Math.round(found.since_start))}. Events wait in the log meanwhile.` : "the process is dead");
      sent.show(found.sent);
      kills.show(found.kills);
      table();
      showLives();
      strips.describe(flows().map((flow) => `${WORDS[flow]}: ${COUNTS.map(([count, words]) => `${number(found[`${key(flow)}_${count}`])} ${words}`).join(", ")}`).join(". "));
    },
    close() { strips?.close(); },
  };
}
