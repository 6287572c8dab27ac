// Experiment 6: commands are decided, events are appended, the balance is what they come to.
import { h, put, svg } from "/static/dom.js";
import { number } from "/static/format.js";
import { box, facts, figure, milliseconds, stage } from "./boxes.js";

const WIDE = 720, HIGH = 190, STEP = 20, MIDDLE = 128, TALL = 56, LARGEST = 60;
const money = (value) => new Intl.NumberFormat("en", { minimumFractionDigits: 2, maximumFractionDigits: 2 }).format(value);
const SIGN = { Deposited: 1, Withdrawn: -1 };

export function picture() {
  const shown = stage("Commands, events and the state that is derived from them", "sourcing");
  const commands = box("Commands", "flow", facts(["events appended", figure("accepted", number)], ["refused", figure("refused", number)]));
  const decide = box("decide", "group", h("p", { class: "note" }, "Load the state, decide, append; or refuse."));
  const said = h("p", { class: "sourcing-said", "aria-live": "off" }, " ");
  decide.append(said);
  const strip = drawStrip(), store = box("Event store: stream ada", "topic", strip.node);
  const cards = [
    card("Now", "target", ["balance", figure("balance", money)], ["version", figure("version", number)], ["events read", figure("behind", number)], ["loaded in", figure("load_ms", milliseconds)]),
    card("Then", "capture", ["balance", figure("past_balance", money)], ["version", figure("past_version", number)]),
    card("Replayed from the first event", "flow", ["balance", figure("replay_balance", money)], ["events", figure("replay_events", number)], ["took", figure("replay_ms", milliseconds)]),
  ];
  const ages = h("p", { class: "note" }), bars = drawBars();
  cards[1].node.append(ages);
  shown.node.classList.add("sourcing-stage");
  for (const each of [store, bars.node]) each.classList.add("wide-box");
  shown.node.append(commands, decide, store, h("div", { class: "sourcing-cards" }, cards.map((each) => each.node)), bars.node);
  shown.join("command", commands, decide);
  shown.join("event", decide, store);
  for (const each of cards) shown.join(each.title, store, each.node, "weak");
  let replays = 0;

  function draw(frame) {
    const found = frame.figures;
    for (const each of [commands.querySelector("dl"), ...cards.map((one) => one.facts)]) each.draw(found);
    strip.draw(found.strip ?? [], found.past_version);
    bars.draw(found);
    put(ages, frame.values.ago === undefined ? "" : `${frame.values.ago} seconds ago; the dashed line is there`);
    for (const event of frame.events) {
      shown.send("command", event.refused ? "bad" : "flow", { ms: 350 });
      if (event.refused) put(said, `refused: ${event.refused}`);
      else shown.send("event", SIGN[event.type] < 0 ? "warn" : "ok", { delay: 350, ms: 450 });
    }
    const count = frame.lines.filter((each) => each.text.includes("replayed")).length;
    if (count > replays) for (let n = 0; n < 24; n++) shown.send(cards[2].title, "flow", { delay: n * 25 });
    replays = count;
  }
  return { node: shown.node, draw, close: shown.close };
}

function card(title, kind, ...rows) {
  const listed = facts(...rows), node = box(title, kind, listed);
  return { title, node, facts: listed };
}

// The last events as bars, up for money that came and down for money that went; above them the balance.
function drawStrip() {
  const bars = new Map(), layer = svg("g"), line = svg("path", { class: "sourcing-balance" });
  const then = svg("g", { class: "sourcing-then" }, svg("line", { y1: 0, y2: HIGH - 14 }), svg("text", { y: HIGH - 2, "text-anchor": "middle" }, "then"));
  const node = svg("svg", { class: "sourcing-strip", viewBox: `0 0 ${WIDE} ${HIGH}`, role: "img" }, svg("line", { class: "sourcing-zero", x1: 0, x2: WIDE, y1: MIDDLE, y2: MIDDLE }), layer, line, then);
  const wrap = h("div", {}, h("div", { class: "sourcing-legend" }, legend("ok", "deposited"), legend("warn", "withdrawn"), legend("line", "balance behind each event")), node);
  return {
    node: wrap,
    draw(events, past) {
      const seen = new Set(), balances = events.map((each) => each.balance);
      const least = Math.min(...balances), most = Math.max(least + 1, ...balances);
      const place = (at) => WIDE - (events.length - at) * STEP;
      events.forEach((event, at) => {
        seen.add(event.version);
        if (!bars.has(event.version)) { bars.set(event.version, bar(event)); layer.append(bars.get(event.version)); }
        bars.get(event.version).style.transform = `translate(${place(at)}px, 0)`;
      });
      for (const [version, each] of bars) if (!seen.has(version)) { each.remove(); bars.delete(version); }
      line.setAttribute("d", events.map((each, at) => `${at ? "L" : "M"}${place(at) + STEP / 2},${56 - ((each.balance - least) / (most - least)) * 44}`).join(""));
      const first = events[0]?.version ?? 1, x = past === undefined ? WIDE : Math.max(18, place(past - first + 1));
      then.style.transform = `translate(${Math.min(WIDE - 18, x)}px, 0)`;
      const last = events.at(-1);
      node.setAttribute("aria-label", last ? `${events.length} last events up to version ${last.version}; the balance is ${money(last.balance)}` : "no events yet");
    },
  };
}

function bar(event) {
  const sign = SIGN[event.type] ?? 0, high = Math.max(4, (Math.min(event.amount, LARGEST) / LARGEST) * TALL);
  const y = sign < 0 ? MIDDLE : MIDDLE - high;
  return svg("g", { class: `sourcing-bar ${sign < 0 ? "warn" : sign > 0 ? "ok" : "off"}` }, svg("rect", { x: 2, y, width: STEP - 4, height: high * (sign < 0 ? 0.75 : 1), rx: 2 }), svg("title", {}, `${event.version}: ${event.type} ${money(event.amount)}, balance ${money(event.balance)}`));
}

const legend = (kind, text) => h("span", { class: `sourcing-key ${kind}` }, text);

// How long a stream takes to load, without a snapshot and with one; lengths of bars are logarithms.
function drawBars() {
  const note = h("p", { class: "note" }), rows = h("div", { class: "sourcing-loads" }), drawn = new Map();
  const node = box("Loading a stream, without a snapshot and with one", "off", note, rows);
  return {
    node,
    draw(found) {
      for (const length of found.lengths ?? []) {
        if (!drawn.has(length)) { drawn.set(length, load(length)); rows.append(drawn.get(length).node); }
        drawn.get(length).draw(found);
      }
      const filled = found.filled;
      put(note, filled && filled.done < filled.length ? `writing a history: ${number(filled.done)} of ${number(filled.length)} events` : "Each ten times longer bar takes ten times as long (logarithmic).");
    },
  };
}

function load(length) {
  const plain = meter(`plain_${length}`, "without", "bad"), kept = meter(`kept_${length}`, "with", "ok");
  const behind = figure(`behind_${length}`, (value) => `${number(value)} events read with it`);
  const node = h("div", { class: "sourcing-load" }, h("h4", {}, `${number(length)} events`), plain.node, kept.node, h("p", { class: "note" }, behind));
  return { node, draw: (found) => { plain.draw(found); kept.draw(found); behind.draw(found); } };
}

function meter(name, label, kind) {
  const value = figure(name, milliseconds), fill = h("i", { class: kind });
  const node = h("div", { class: "sourcing-meter" }, h("span", {}, label), h("b", {}, fill), value);
  return {
    node,
    draw(found) {
      value.draw(found);
      const share = found[name] ? Math.log10(Math.max(1, found[name] * 10)) / 5 : 0;
      fill.style.width = `${Math.min(100, share * 100)}%`;
    },
  };
}
