// Groups and queues: members, assignment, lag in events and seconds with its trend, and a reset.
import { get, state } from "../api.js";
import { dialogue } from "../action.js";
import { empty, failure, fill, h, panel, pill, put, tile } from "../dom.js";
import { number, seconds, short } from "../format.js";
import { chart, spark } from "../spark.js";
import { table } from "../table.js";

const WORST = ["stopped", "rewind", "stalled", "warning", "unknown", "ok"];
const link = (path, name) => h("a", { href: `#/${path}/${encodeURIComponent(name)}` }, name);

export function groups() {
  const filter = h("input", { class: "filter", type: "search", placeholder: "Filter by name  ( / )", "aria-label": "Filter groups by name" });
  const list = table("Groups and queues", [
    { label: "Group", name: true, sort: (row) => row.group, cell: (row) => h("span", {}, link("groups", row.group), row.kind === "share" ? [" ", h("span", { class: "badge accent" }, "queue")] : null), sig: (row) => row.group },
    { label: "Judged", sort: (row) => WORST.indexOf(row.judgement), cell: (row) => pill(row.judgement), sig: (row) => row.judgement },
    { label: "Lag", num: true, sort: (row) => row.events, cell: (row) => number(row.events) },
    { label: "Oldest unread", num: true, sort: (row) => row.seconds, cell: (row) => seconds(row.seconds) },
    { label: "Last 2 min", num: true, wide: true, cell: (row) => spark(state.lags[row.group] ?? [], `lag of ${row.group}`), sig: (row) => (state.lags[row.group] ?? []).join() },
    { label: "Members", num: true, sort: (row) => row.members, cell: (row) => (row.kind === "share" ? "–" : number(row.members)), wide: true },
    { label: "State", cell: (row) => row.state.replaceAll("_", " "), wide: true },
    { label: "Topics", wide: true, cell: (row) => Object.keys(row.topics).slice(0, 3).join(", ") + (Object.keys(row.topics).length > 3 ? " …" : "") },
  ], (row) => row.group, empty("No groups yet", "A group appears when a consumer joins it, or a flow runs."));
  const box = panel("Groups and queues", list);
  box.head.append(h("span", { class: "spacer" }), filter);
  let last = null;
  const update = (now) => {
    last = now;
    const words = filter.value.toLowerCase().trim();
    list.update(now.groups.filter((each) => each.group.toLowerCase().includes(words)));
  };
  filter.addEventListener("input", () => last && update(last));
  return { nodes: [box], update };
}

export function group(name) {
  const tiles = { judged: tile("Judged"), lag: tile("Lag"), seconds: tile("Oldest unread"), members: tile("Members"), state: tile("State"), again: tile("Redeliveries") };
  const trend = chart("Lag, 2 minutes", short), problem = h("div"), note = h("div", { class: "body note" });
  const lags = table("Lag of each partition", [
    { label: "Topic", name: true, sort: (row) => row.topic, cell: (row) => link("topics", row.topic), sig: (row) => row.topic },
    { label: "Partition", num: true, sort: (row) => row.partition, cell: (row) => String(row.partition) },
    { label: "Position", num: true, cell: (row) => number(row.position), wide: true },
    { label: "End", num: true, cell: (row) => number(row.end), wide: true },
    { label: "Lag", num: true, sort: (row) => row.events, cell: (row) => number(row.events) },
    { label: "Oldest unread", num: true, sort: (row) => row.seconds, cell: (row) => seconds(row.seconds) },
    { label: "At its commits", num: true, wide: true, cell: (row) => spark(row.trend, "lag at the last commits"), sig: (row) => row.trend.join() },
    { label: "Judged", cell: (row) => pill(row.judgement), sig: (row) => row.judgement },
    { label: "Deleted in", num: true, wide: true, cell: (row) => (row.left === null ? "–" : seconds(row.left)) },
    { label: "Member", wide: true, cell: (row) => row.member ?? "nobody" },
  ], (row) => `${row.topic} ${row.partition}`, empty("It has committed no position"));
  const members = table("Members", [
    { label: "Member", name: true, cell: (row) => row.static_id ?? row.id },
    { label: "Host", cell: (row) => row.host },
    { label: "Partitions", cell: (row) => row.partitions.map(([topic, number]) => `${topic}[${number}]`).join("  ") || "none" },
  ], (row) => row.id, empty("No members now", "Positions stay; a member that joins goes on from them."));
  const positions = panel("Lag of each partition", lags, note), who = panel("Members", members);
  const reset = h("button", { type: "button" }, "Reset …");
  positions.head.append(h("span", { class: "spacer" }), reset);
  let topics = [], timer = null;

  reset.addEventListener("click", () => {
    const topic = h("select", {}, topics.map((each) => h("option", { value: each }, each)));
    const to = h("input", { value: "beginning", list: "places" });
    const inside = h("div", { class: "fields" }, h("label", {}, "Topic", topic), h("label", {}, "To", to), h("datalist", { id: "places" }, ["beginning", "end"].map((value) => h("option", { value }))), h("p", { class: "note" }, "beginning, end, a time such as 2026-01-31T12:00:00Z, or offsets as 0=17,1=4. The group must have no members."));
    dialogue({ title: `Move ${name} to another place`, action: "group.reset", inside, values: () => ({ group: name, topic: topic.value, to: to.value }), verb: "Move it", danger: true, done: refresh });
  });

  async function refresh() {
    try {
      const found = await get("group", { name });
      fill(problem);
      topics = [...new Set(found.lags.map((each) => each.topic))];
      lags.update(found.lags);
      members.update(found.members);
      reset.disabled = !topics.length || found.kind === "share";
      const lost = found.lags.reduce((sum, each) => sum + each.lost, 0);
      fill(note, found.flow ? ["These are the positions of flow ", link("pipelines", found.flow), "; a flow goes by its checkpoint, so a reset does not move it. "] : "", lost ? `${number(lost)} events were deleted by retention before it read them.` : "");
      note.hidden = !note.textContent;
      who.hidden = found.kind === "share" || (Boolean(found.flow) && !found.members.length);
    } catch (error) { fill(problem, failure(error)); }
  }
  refresh();
  timer = setInterval(refresh, 2000);
  return {
    nodes: [problem, h("div", { class: "tiles" }, Object.values(tiles), trend), positions, who],
    update(now) {
      const found = now.groups.find((each) => each.group === name);
      if (!found) return;
      tiles.judged.show(found.judgement, JUDGED[found.judgement] ?? "");
      tiles.lag.show(number(found.events), "events");
      tiles.seconds.show(seconds(found.seconds));
      tiles.members.show(found.kind === "share" ? "–" : number(found.members), found.kind === "share" ? "Kafka's client can't ask" : "");
      tiles.again.hidden = found.kind !== "share";
      tiles.again.show(number(found.returned), "came back in 10 minutes");
      tiles.state.show(found.state.replaceAll("_", " "), found.kind === "share" ? "queue" : "consumer group");
      trend.show(state.lags[name] ?? [], found.events);
    },
    close() { clearInterval(timer); },
  };
}

const JUDGED = { ok: "it keeps up", warning: "lag grows", stalled: "it commits, and does not move", stopped: "it commits nothing, and lag grows", rewind: "it went back", unknown: "too few commits to judge" };
