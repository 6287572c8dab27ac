// Questions to the server, actions, and the two streams: snapshots, and the events of a topic.

export const session = { csrf: "", read_only: true, version: "", views: [], pages: [] };
export const state = { snapshot: null, rates: Object.create(null), lags: Object.create(null), received: 0 };
const KEPT = 120;

export class Refused extends Error {
  constructor(found) {
    super(found.message ?? "the console does not answer");
    this.hint = found.hint ?? "";
    this.id = found.id ?? "";
  }
}

async function answered(response) {
  let found = {};
  try { found = await response.json(); } catch { /* what is no JSON has no message either */ }
  if (!response.ok) throw new Refused({ message: `the console answered ${response.status}`, ...found });
  return found;
}

async function asked(path, options) {
  let response;
  try { response = await fetch(path, options); } catch { throw new Refused({ message: "the console does not answer", hint: "is `penstock console` still running?" }); }
  return answered(response);
}

export function get(path, query = {}) {
  const pairs = Object.entries(query).flatMap(([name, value]) => (Array.isArray(value) ? value : [value]).filter((each) => each !== "" && each !== null && each !== undefined).map((each) => [name, each]));
  const text = new URLSearchParams(pairs).toString();
  return asked(`/api/${path}${text ? `?${text}` : ""}`);
}

export function act(action, dry_run, values) {
  return post("actions", { action, dry_run, ...values });
}

export function post(path, body) {
  const headers = { "Content-Type": "application/json", "X-Penstock-CSRF": session.csrf };
  return asked(`/api/${path}`, { method: "POST", headers, body: JSON.stringify(body) });
}

export async function begin() {
  Object.assign(session, await get("session"));
}

const address = (path) => `${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/api/${path}`;

export function live(changed, gone) {
  stream("live", (found) => {
    if (found.history) remember(found.history);
    if (found.snapshot) { take(found.snapshot); changed(); }
  }, gone);
}

// Calls `came` with every message of a stream, which is opened again when it breaks; returns how to end it.
export function stream(path, came, gone = () => {}) {
  let pause = 500, socket = null, timer = null;
  const open = () => {
    socket = new WebSocket(address(path), "penstock");
    socket.onmessage = ({ data }) => { pause = 500; came(JSON.parse(data)); };
    socket.onclose = () => { gone(); timer = setTimeout(open, pause); pause = Math.min(8000, pause * 2); };
  };
  open();
  return () => { clearTimeout(timer); socket.onclose = socket.onmessage = null; socket.close(); };
}

// Names of topics and groups are whatever strangers chose: "constructor" is none of an object's own.
const own = (found) => Object.assign(Object.create(null), found);

function remember(history) {
  state.rates = own(history.rates);
  state.lags = own(history.lags);
}

function take(snapshot) {
  const before = new Map((state.snapshot?.topics ?? []).map((topic) => [topic.name, topic.end]));
  const took = Math.max(0.2, snapshot.at - (state.snapshot?.at ?? snapshot.at));
  for (const topic of snapshot.topics) if (before.has(topic.name)) push(state.rates, topic.name, Math.max(0, (topic.end - before.get(topic.name)) / took));
  for (const group of snapshot.groups) group.topics = own(group.topics);
  const versions = new Map(snapshot.pipelines.flatMap((each) => each.flows).map((each) => [each.label, each.versions]));
  for (const flow of snapshot.flows) flow.beside = beside(flow, versions.get(flow.label));
  for (const group of snapshot.groups) push(state.lags, group.group, group.events);
  state.snapshot = snapshot;
  state.received = Date.now();
}

// What a flow is called beside the one at work: its shadow, or a generation of which no more is known.
function beside(flow, known) {
  if (known ? flow.generation === known.at_work : !flow.generation) return "";
  return known && flow.generation === known.shadow ? "shadow" : `generation ${flow.generation}`;
}

function push(all, name, value) {
  const kept = (all[name] ??= []);
  kept.push(value);
  if (kept.length > KEPT) kept.shift();
}

export function tail(topic, came, ended) {
  const socket = new WebSocket(`${address("tail")}?name=${encodeURIComponent(topic)}`, "penstock");
  socket.onmessage = ({ data }) => { const found = JSON.parse(data); if (found.error) ended(new Refused(found.error)); else came(found); };
  socket.onclose = ({ code, reason }) => ended(code === 1000 || code === 1005 ? null : new Refused({ message: reason || "the tail has ended", hint: "start it again" }));
  return () => { socket.onclose = null; socket.onmessage = null; socket.close(); };
}
