// Topics: all of them; and one, with its partitions, readers, a live tail, a search, dead letters and a form.
import { get, state, tail } from "../api.js";
import { dialogue } from "../action.js";
import { empty, failure, fill, h, panel, pill, put, tile } from "../dom.js";
import { eventLine } from "../events.js";
import { bytes, number, rate, retention, seconds, short } from "../format.js";
import { chart, spark } from "../spark.js";
import { table } from "../table.js";
import { form } from "./event_form.js";

const link = (path, name) => h("a", { href: `#/${path}/${encodeURIComponent(name)}` }, name);

export function topics() {
  const filter = h("input", { class: "filter", type: "search", placeholder: "Filter by name  ( / )", "aria-label": "Filter topics by name" });
  const all = h("input", { type: "checkbox", id: "internal" });
  const count = h("span", { class: "note spacer" });
  const readers = new Map();
  const list = table("Topics", [
    { label: "Topic", name: true, sort: (row) => row.name, cell: (row) => h("span", {}, link("topics", row.name), row.letters ? [" ", h("span", { class: "badge warn" }, `${short(row.letters)} dead`)] : null), sig: (row) => `${row.name} ${row.letters}` },
    { label: "Partitions", num: true, sort: (row) => row.partitions, cell: (row) => number(row.partitions), wide: true },
    { label: "Events kept", num: true, sort: (row) => row.events, cell: (row) => number(row.events) },
    { label: "Rate", num: true, sort: (row) => row.rate, cell: (row) => rate(row.rate) },
    { label: "Last 2 min", num: true, wide: true, cell: (row) => spark(state.rates[row.name] ?? [], `rate of ${row.name}`), sig: (row) => `${row.end} ${state.rates[row.name]?.length} ${row.rate}` },
    { label: "Size", num: true, sort: (row) => row.bytes, cell: (row) => bytes(row.bytes), wide: true },
    { label: "Kept for", num: true, sort: (row) => row.retention ?? Infinity, cell: retention, wide: true },
    { label: "Readers", num: true, sort: (row) => readers.get(row.name) ?? 0, cell: (row) => number(readers.get(row.name) ?? 0), wide: true },
  ], (row) => row.name, empty("No topics match", "Declare one in a module, then apply it.", "penstock topics apply shop.py"));
  const box = panel("Topics", list);
  box.head.append(count, h("label", { class: "note" }, all, " internal topics"), filter);
  let last = null;
  const update = (now) => {
    last = now;
    readers.clear();
    for (const group of now.groups) for (const name of Object.keys(group.topics)) readers.set(name, (readers.get(name) ?? 0) + 1);
    const words = filter.value.toLowerCase().trim();
    const found = now.topics.filter((topic) => (all.checked || !topic.internal) && topic.name.toLowerCase().includes(words));
    put(count, `${found.length} of ${now.topics.length}`);
    list.update(found);
  };
  filter.addEventListener("input", () => last && update(last));
  all.addEventListener("change", () => last && update(last));
  return { nodes: [box], update };
}

export function topic(name) {
  const tiles = { events: tile("Events kept"), kept: tile("Kept for"), size: tile("Size"), partitions: tile("Partitions"), letters: tile("Dead letters") };
  const rates = chart("Events a second, 2 minutes", rate), problem = h("div");
  const partitions = table("Partitions", [
    { label: "Partition", num: true, cell: (row) => String(row.partition) },
    { label: "First offset", num: true, cell: (row) => number(row.first) },
    { label: "Next offset", num: true, cell: (row) => number(row.end) },
    { label: "Committed to", num: true, wide: true, cell: (row) => (row.stable === null || row.stable === row.end ? "the end" : number(row.stable)) },
    { label: "Events kept", num: true, cell: (row) => number(row.events) },
  ], (row) => row.partition);
  const groups = table("Readers", [
    { label: "Group", name: true, cell: (row) => link("groups", row.group), sig: (row) => row.group },
    { label: "Lag", num: true, cell: (row) => number(row.events) },
    { label: "Oldest unread", num: true, cell: (row) => seconds(row.seconds), wide: true },
    { label: "Judged", cell: (row) => pill(row.judgement), sig: (row) => row.judgement },
  ], (row) => row.group, empty("Nobody reads this topic in a group"));
  const settings = h("dl", { class: "keys body" }), flows = h("div", { class: "body note" }), sending = h("div", { class: "body" }), letters = h("div");
  const events = eventsPanel(name), send = panel("Produce an event", sending), dead = panel("Dead letters", letters);
  const redrive = h("button", { type: "button", onclick: () => dialogue({ title: `Redrive the dead letters of ${name}`, action: "topic.redrive", inside: h("p", {}, "Every letter that waits is sent to its topic again, once. What still can't be decoded stays a dead letter."), values: () => ({ topic: name }), verb: "Redrive", done: refresh }) }, "Redrive …");
  dead.head.append(h("span", { class: "spacer" }), redrive);
  dead.hidden = true;
  const more = panel("Settings", settings);
  let isFormed = false, timer = null;

  async function refresh() {
    try {
      const found = await get("topic", { name });
      fill(problem);
      partitions.update(found.partitions);
      groups.update(found.groups);
      fill(flows, found.writers.length ? ["Written by ", found.writers.map((each, n) => [n ? ", " : "", link("pipelines", each)]), ". "] : "", found.readers.length ? ["Read by ", found.readers.map((each, n) => [n ? ", " : "", link("pipelines", each)]), "."] : "");
      flows.hidden = !flows.textContent;
      fill(settings, Object.entries(found.config).filter(([key]) => INTERESTING.includes(key)).flatMap(([key, value]) => [h("dt", { class: "mono dim" }, key), h("dd", { class: "mono" }, value)]));
      if (!isFormed) { isFormed = true; fill(sending, found.form ? form(name, found.form) : h("p", { class: "note" }, `${found.closed || "This topic can't be written here"}.`)); }
      const waiting = found.dead_letters.find((each) => each.source === name && each.waiting);
      if (dead.hidden && waiting) showLetters(waiting.topic, letters);
      dead.hidden = !waiting;
    } catch (error) { fill(problem, failure(error)); }
  }
  refresh();
  timer = setInterval(refresh, 3000);
  return {
    nodes: [problem, h("div", { class: "tiles" }, Object.values(tiles), rates), events.node, dead, h("div", { class: "row" }, panel("Partitions", partitions), panel("Readers", groups, flows)), h("div", { class: "row" }, send, more)],
    update(now) {
      const found = now.topics.find((each) => each.name === name);
      if (!found) return;
      tiles.events.show(number(found.events));
      tiles.kept.show(retention(found));
      tiles.size.show(bytes(found.bytes), found.bytes === null ? "not known of a remote broker" : "on this machine's disk");
      tiles.partitions.show(number(found.partitions));
      tiles.letters.show(number(found.letters), found.letters ? "see below" : "none");
      rates.show(state.rates[name] ?? [], found.rate);
    },
    close() { clearInterval(timer); events.close(); },
  };
}

const INTERESTING = ["cleanup.policy", "retention.ms", "retention.bytes", "segment.bytes", "min.insync.replicas", "max.message.bytes", "min.compaction.lag.ms", "message.timestamp.type", "compression.type"];

async function showLetters(topic, box) {
  try {
    const found = await get("events", { name: topic, limit: 100 });
    fill(box, found.events.length ? h("div", { class: "events" }, found.events.map(eventLine)) : empty("All dead letters were redriven"));
  } catch (error) { fill(box, failure(error)); }
}

function eventsPanel(name) {
  const from = h("select", {}, [["latest", "the latest"], ["beginning", "the beginning"], ["time", "a time"], ["offset", "an offset"]].map(([value, text]) => h("option", { value }, text)));
  const at = h("input", { type: "datetime-local", step: 1 }), partition = h("input", { type: "number", min: 0, value: 0, size: 4 }), offset = h("input", { type: "number", min: 0, value: 0, size: 10 });
  const key = h("input", { placeholder: "the whole key", size: 14 }), text = h("input", { placeholder: "somewhere in the event", size: 20 });
  const labels = { at: h("label", {}, "Time (yours)", at), partition: h("label", {}, "Partition", partition), offset: h("label", {}, "Offset", offset) };
  const find = h("button", { type: "submit", class: "primary" }, "Search"), follow = h("button", { type: "button" }, "Follow live");
  const said = h("span", { class: "note spacer", role: "status" }), list = h("div", { class: "events" }), foot = h("div", { class: "body" });
  const head = h("form", { class: "fields body", onsubmit: (event) => { event.preventDefault(); search(); } }, h("label", {}, "From", from), labels.at, labels.partition, labels.offset, h("label", {}, "Key", key), h("label", {}, "Text", text), find, follow);
  const node = panel("Events", head, list, foot);
  node.head.append(said);
  let stop = null, skipped = 0, shown = 0;
  foot.hidden = true;

  const chosen = () => {
    labels.at.hidden = from.value !== "time";
    labels.partition.hidden = labels.offset.hidden = from.value !== "offset";
  };
  from.addEventListener("change", chosen);
  chosen();

  function query(next) {
    const asked = { name, key: key.value, text: text.value, limit: 50 };
    if (next) return { ...asked, from: next };
    if (from.value === "time") return { ...asked, from: at.value ? new Date(at.value).toISOString() : "beginning" };
    if (from.value === "offset") return { ...asked, partition: partition.value, offset: offset.value };
    return { ...asked, from: from.value };
  }

  async function search(next) {
    end();
    find.disabled = true;
    put(said, "searching …");
    try {
      const found = await get("events", query(next));
      if (!next) fill(list);
      list.append(...found.events.map(eventLine));
      if (!list.children.length) list.append(empty("No event matches", found.next ? "Go on: there is more to search." : found.incomplete ? "Not everything was searched: choose where to begin." : "Everything that is kept was searched."));
      put(said, `${number(found.events.length)} shown, ${number(found.scanned)} read${found.incomplete ? "; not everything was searched" : ""}`);
      fill(foot, found.next && from.value !== "latest" ? h("button", { type: "button", onclick: () => search(found.next) }, "Go on") : null);
      foot.hidden = !foot.children.length;
    } catch (error) { fill(list, failure(error)); put(said, ""); }
    find.disabled = false;
  }

  function end() {
    stop?.();
    stop = null;
    put(follow, "Follow live");
    follow.classList.remove("primary");
  }

  follow.addEventListener("click", () => {
    if (stop) { end(); put(said, "stopped"); return; }
    fill(list, empty("Waiting for events", "New events appear here as they are written."));
    fill(foot);
    foot.hidden = true;
    skipped = shown = 0;
    put(follow, "Stop");
    stop = tail(name, (found) => {
      skipped += found.skipped;
      shown += found.events.length;
      if (found.events.length && list.querySelector(".empty")) fill(list);
      list.prepend(...found.events.map(eventLine).reverse());
      while (list.children.length > 200) list.lastChild.remove();
      put(said, `following, ${number(shown)} shown${skipped ? `, ${number(skipped)} left out` : ""}`);
    }, (error) => { end(); if (error) list.prepend(failure(error)); });
  });
  search();
  return { node, close: end };
}
