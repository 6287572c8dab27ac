// Overview: the map of the system, and what to look at first.
import { empty, h, panel, pill, tile } from "../dom.js";
import { rate, seconds, short } from "../format.js";
import { drawMap } from "../map.js";
import { table } from "../table.js";

const JUDGED = ["stopped", "rewind", "stalled", "warning", "unknown", "ok"];

export function overview() {
  const tiles = { flows: tile("Flows running", "#/pipelines"), came: tile("Events coming in", "#/topics"), lag: tile("Largest lag", "#/groups"), letters: tile("Dead letters", "#/topics"), services: tile("Services here") };
  const box = h("div", { class: "map-box", tabindex: 0, role: "region", "aria-label": "Map, may be scrolled" });
  const note = h("span", { class: "note spacer" });
  const map = panel("Live map", box);
  map.head.append(note);
  const nothing = empty("Nothing flows here yet", "Start a pipeline, or a demo that brings one, and it appears within seconds.", "penstock demo platform");
  map.append(nothing);
  const draw = drawMap(box);
  const lags = table("Readers, the worst first", [
    { label: "Reader", name: true, cell: (row) => h("a", { href: `#/groups/${encodeURIComponent(row.group)}` }, row.group), sig: (row) => row.group },
    { label: "Lag", num: true, cell: (row) => short(row.events) },
    { label: "Oldest unread", num: true, cell: (row) => seconds(row.seconds) },
    { label: "Judged", cell: (row) => pill(row.judgement), sig: (row) => row.judgement },
  ], (row) => row.group, empty("No reader has committed a position yet"));
  const services = table("Services on this machine", [
    { label: "Service", name: true, cell: (row) => `${row.name} ${row.version}` },
    { label: "State", cell: (row) => pill(row.state), sig: (row) => row.state },
    { label: "Address", cell: (row) => row.address ?? "–", wide: true },
    { label: "Up for", num: true, cell: (row) => seconds(row.uptime) },
  ], (row) => row.name, empty("No services were started on this machine", "The log is elsewhere, or nothing runs.", "penstock up"));
  const readers = panel("Readers, the worst first", lags), here = panel("Services on this machine", services);
  return {
    nodes: [h("div", { class: "tiles" }, Object.values(tiles)), map, h("div", { class: "row" }, readers, here)],
    update(now) {
      const running = now.flows.filter((flow) => flow.state === "running").length, down = now.services.filter((each) => each.state !== "running");
      const worst = [...now.groups].sort((one, other) => JUDGED.indexOf(one.judgement) - JUDGED.indexOf(other.judgement) || other.events - one.events);
      const most = worst.reduce((found, each) => (each.events > (found?.events ?? 0) ? each : found), null);
      const waiting = now.dead_letters.filter((each) => each.waiting), letters = waiting.reduce((sum, each) => sum + each.waiting, 0);
      const written = new Set(now.flows.flatMap((flow) => flow.writes));
      const came = now.topics.filter((topic) => !topic.internal && !topic.is_letters && !written.has(topic.name)).reduce((sum, topic) => sum + topic.rate, 0);
      tiles.flows.show(`${running} of ${now.flows.length}`, `${rate(now.flows.reduce((sum, flow) => sum + flow.rate, 0))} read by all`);
      tiles.came.show(rate(came), "in topics that no flow writes");
      tiles.lag.show(most ? short(most.events) : "0", most ? `${most.group}, ${seconds(most.seconds)}` : "all readers are at the end");
      tiles.letters.show(short(letters), letters ? `wait, in ${waiting.length} topics` : "none waits");
      tiles.services.show(down.length ? `${down.length} down` : now.services.length ? "all up" : "none", now.services.map((each) => each.name).join(", "));
      const found = draw(now);
      nothing.hidden = Boolean(found.nodes.size);
      box.hidden = !found.nodes.size;
      note.textContent = found.alone ? `${found.alone} further topic${found.alone > 1 ? "s" : ""} without a flow or group` : "";
      lags.update(worst.slice(0, 8));
      services.update(now.services);
    },
  };
}
