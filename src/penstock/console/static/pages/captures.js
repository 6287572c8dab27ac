// Capture: databases whose changes come in, how far behind each is, and the copies that are made of them.
import { get } from "../api.js";
import { dialogue } from "../action.js";
import { empty, failure, fill, h, panel, pill, tile } from "../dom.js";
import { bytes, number, seconds, time } from "../format.js";
import { table } from "../table.js";

export function captures() {
  const list = table("Captures", [
    { label: "Capture", name: true, sort: (row) => row.capture, cell: (row) => h("a", { href: `#/captures/${encodeURIComponent(row.capture)}` }, row.capture), sig: (row) => row.capture },
    { label: "State", cell: (row) => pill(row.state), sig: (row) => row.state },
    { label: "Changes", num: true, sort: (row) => row.changes, cell: (row) => number(row.changes) },
    { label: "Behind", num: true, sort: (row) => row.behind, cell: (row) => bytes(row.behind) },
    { label: "Kept by the database", num: true, cell: (row) => bytes(row.retained), wide: true },
    { label: "Snapshot", cell: (row) => row.snapshot, wide: true },
    { label: "Slot", cell: (row) => row.slot, wide: true },
    { label: "Last change", wide: true, cell: (row) => (row.last_event ? time(row.last_event) : "–"), sig: (row) => row.last_event },
  ], (row) => row.capture, empty("No database is captured", "Its tables become topics: first the rows, then every change.", "penstock capture add shop --dsn … --tables public.orders"));
  const copies = table("Replicas", replicaColumns(), (row) => `${row.connection} ${row.replica}`, empty("No replicas", "A replica keeps a capture's tables in another database.", "penstock replica run copy --capture shop"));
  const archives = table("Archives", [
    { label: "Topic", name: true, cell: (row) => row.topic }, { label: "State", cell: (row) => pill(row.state), sig: (row) => row.state },
    { label: "Segments", num: true, cell: (row) => number(row.segments) }, { label: "Archived", num: true, cell: (row) => number(row.archived) },
    { label: "Behind", num: true, cell: (row) => number(row.behind) }, { label: "Where", wide: true, cell: (row) => row.to },
  ], (row) => row.topic, empty("No topic is archived", "An archive keeps a topic's events as Parquet files.", "penstock archive add orders --to …"));
  return {
    nodes: [panel("Captures", list), h("div", { class: "row" }, panel("Replicas", copies), panel("Archives", archives))],
    update(now) { list.update(now.captures); copies.update(now.replicas); archives.update(now.archives); },
  };
}

const audited = (row) => h("button", { type: "button", onclick: () => auditDialogue(row) }, "Audit …");

function auditDialogue(row) {
  const repair = h("input", { type: "checkbox" });
  const inside = h("div", { class: "stack" }, h("p", {}, "All rows of its tables are compared with the source's by checksums, while both go on. Nothing is written, unless what differs is to be captured again."), h("label", { class: "note" }, repair, " capture again what differs, and look once more"));
  dialogue({ title: `Audit replica ${row.replica}`, action: "replica.audit", inside, values: () => ({ name: row.replica, repair: repair.checked, ...(row.connection ? { connection: row.connection } : {}) }), verb: "Audit it", eager: true });
}

const replicaColumns = () => [
  { label: "Replica", name: true, cell: (row) => row.replica }, { label: "State", cell: (row) => pill(row.state), sig: (row) => row.state },
  { label: "Lag", num: true, cell: (row) => number(row.lag) }, { label: "Seconds", num: true, cell: (row) => seconds(row.seconds), wide: true },
  { label: "Compared", cell: audited, sig: (row) => `${row.replica} ${row.connection}` },
  { label: "Of", cell: (row) => row.capture, wide: true }, { label: "Tables", num: true, cell: (row) => number(row.tables), wide: true },
];

export function capture(name) {
  const tiles = { state: tile("State"), changes: tile("Changes"), behind: tile("Behind"), seconds: tile("Behind in time"), retained: tile("Log kept by the database"), snapshot: tile("Snapshot") };
  const problem = h("div"), error = h("div");
  const topics = table("Topics", [{ label: "Topic", name: true, cell: (row) => h("a", { href: `#/topics/${encodeURIComponent(row.name)}` }, row.name), sig: (row) => row.name }, { label: "Events kept", num: true, cell: (row) => number(row.events) }], (row) => row.name, empty("No topics yet", "They are made with the first rows."));
  const tables = table("Snapshot of each table", [{ label: "Table", name: true, cell: (row) => row.table }, { label: "Rows read", num: true, cell: (row) => number(row.rows) }, { label: "Of about", num: true, cell: (row) => number(row.about) }, { label: "Snapshot", cell: (row) => pill(row.done ? "done" : "running"), sig: (row) => row.done }], (row) => row.table, empty("The snapshot has not begun"));
  const copies = table("Replicas", replicaColumns(), (row) => `${row.connection} ${row.replica}`, empty("No replicas of it"));
  const button = (action, text) => h("button", { type: "button", onclick: () => dialogue({ title: `${text} ${name}`, action, values: () => ({ name }), verb: text, done: refresh }) }, `${text} …`);
  let timer = null;
  async function refresh() {
    try {
      const found = await get("capture", { name });
      fill(problem);
      fill(error, found.error ? failure({ message: found.error }) : null);
      tiles.state.show(found.state, found.process);
      tiles.changes.show(number(found.changes), "written since it began");
      tiles.behind.show(bytes(found.behind), "of the database's log");
      tiles.seconds.show(seconds(found.seconds));
      tiles.retained.show(bytes(found.retained), `slot ${found.slot}`);
      tiles.snapshot.show(found.snapshot);
      topics.update(found.topics);
      copies.update(found.replicas);
    } catch (refused) { fill(problem, failure(refused)); }
  }
  const readTables = () => get("capture-tables", { name }).then((found) => tables.update(found.tables), () => tables.update([]));
  refresh();
  readTables();
  timer = setInterval(() => { refresh(); readTables(); }, 3000);
  return {
    nodes: [problem, error, h("div", { class: "tiles" }, Object.values(tiles)), h("div", { class: "fields" }, button("capture.pause", "Pause"), button("capture.resume", "Resume")), h("div", { class: "row" }, panel("Snapshot of each table", tables), panel("Topics", topics)), panel("Replicas", copies)],
    close() { clearInterval(timer); },
  };
}
