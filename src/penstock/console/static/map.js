// The map of a system: captures, topics, flows, targets and groups in layers from left to right.
import { put, svg, tone } from "./dom.js";
import { rate, seconds, short } from "./format.js";

const WIDE = 190, HIGH = 50, GAP = 64, ROW = 62, THIN = 20, TOP = 28;
const link = (path, name) => `#/${path}/${encodeURIComponent(name)}`;

// What is connected to what; topics that nothing of the platform reads or writes are left out, and counted.
export function graph(snapshot) {
  const nodes = new Map(), edges = new Map();
  const topics = new Map(snapshot.topics.map((topic) => [topic.name, topic]));
  const groups = new Map(snapshot.groups.map((group) => [group.group, group]));
  const topic = (name) => node(nodes, `topic ${name}`, () => topicNode(name, topics.get(name)));
  const edge = (from, to, more = {}) => edges.set(`${from}>${to}`, { from, to, rate: 0, lag: 0, judgement: "", ...more });

  for (const capture of snapshot.captures) {
    const id = node(nodes, `capture ${capture.capture}`, () => captureNode(capture));
    for (const name of capture.topics) edge(id, topic(name), { rate: topics.get(name)?.rate ?? 0 });
  }
  for (const flow of snapshot.flows) {
    const id = node(nodes, `flow ${flow.label}.${flow.generation}`, () => flowNode(flow));
    const group = groups.get(flow.group);
    for (const name of flow.reads) edge(topic(name), id, { rate: topics.get(name)?.rate ?? 0, lag: group?.topics[name] ?? 0, judgement: group?.judgement });
    for (const name of flow.looks_up) edge(topic(name), id, { lookup: true });
    for (const name of flow.writes) edge(id, topic(name), { rate: topics.get(name)?.rate ?? 0 });
    if (!flow.target.startsWith("topic ")) edge(id, node(nodes, `target ${flow.target}`, () => targetNode(flow)), { rate: flow.rate });
  }
  const own = new Set(snapshot.flows.map((flow) => flow.group));
  for (const group of snapshot.groups) {
    if (own.has(group.group) || group.group.startsWith("penstock")) continue;
    const id = node(nodes, `group ${group.group}`, () => groupNode(group));
    for (const [name, lag] of Object.entries(group.topics)) if (!name.startsWith("_")) edge(topic(name), id, { rate: topics.get(name)?.rate ?? 0, lag, judgement: group.judgement });
  }
  for (const replica of snapshot.replicas) {
    const id = node(nodes, `target replica ${replica.replica}`, () => ({ kind: "target", label: replica.replica, sub: `replica, ${replica.lag} behind`, state: tone(replica.state), said: replica.state, href: "#/captures" }));
    const source = snapshot.captures.find((each) => each.capture === replica.capture);
    for (const name of source?.topics ?? []) edge(topic(name), id, { lag: 0 });
  }
  const alone = snapshot.topics.filter((each) => !each.internal && !each.is_letters && !nodes.has(`topic ${each.name}`)).length;
  return { nodes, edges: [...edges.values()], alone };
}

function node(nodes, id, made) {
  if (!nodes.has(id)) nodes.set(id, { id, ...made() });
  return id;
}

function topicNode(name, topic) {
  const letters = topic?.letters ? ` · ${short(topic.letters)} dead` : "";
  const sub = topic ? `${rate(topic.rate)} · ${short(topic.events)} events${letters}` : "not there";
  return { kind: "topic", label: name, sub, state: topic ? (topic.letters ? "warn" : "") : "bad", said: topic?.letters ? "dead letters" : "", href: link("topics", name) };
}

const captureNode = (capture) => ({ kind: "capture", label: capture.capture, sub: capture.seconds ? `${seconds(capture.seconds)} behind` : `${short(capture.changes)} changes`, state: tone(capture.state), said: capture.state, href: link("captures", capture.capture) });
const flowNode = (flow) => ({ kind: "flow", label: flow.beside ? `${flow.name} ${flow.beside}` : flow.label, sub: `${rate(flow.rate)}${flow.p99 ? ` · p99 ≤ ${seconds(flow.p99)}` : ` · ${flow.mode}`}`, state: tone(flow.state), said: flow.state, href: link("pipelines", flow.label) });
const targetNode = (flow) => ({ kind: "target", label: flow.target.replace(/^\w+ /, ""), sub: flow.target.split(" ")[0].replace(/([a-z])([A-Z])/g, "$1 $2"), state: "", said: "", href: link("pipelines", flow.label) });
const groupNode = (group) => ({ kind: "group", label: group.group, sub: `${group.kind === "share" ? "queue" : `${group.members} member${group.members === 1 ? "" : "s"}`} · lag ${short(group.events)}`, state: tone(group.judgement), said: group.judgement, href: link("groups", group.group) });

export function drawMap(box) {
  let shape = "", drawn = null;
  return (snapshot) => {
    const found = graph(snapshot);
    const now = JSON.stringify([[...found.nodes.keys()], found.edges.map((each) => `${each.from}>${each.to}`)]);
    if (now !== shape) { shape = now; drawn = found.nodes.size ? draw(box, found) : null; }
    drawn?.update(found);
    return found;
  };
}

// Marks the edges that close a circle: a flow may read what is made of its own results.
function findCircles(nodes, edges) {
  const out = new Map([...nodes.keys()].map((id) => [id, []])), entered = new Set(), state = new Map();
  for (const edge of edges) { edge.back = false; out.get(edge.from).push(edge); entered.add(edge.to); }
  const visit = (id) => {
    state.set(id, "open");
    for (const edge of out.get(id)) {
      if (state.get(edge.to) === "open") edge.back = true;
      else if (!state.has(edge.to)) visit(edge.to);
    }
    state.set(id, "done");
  };
  for (const id of [...nodes.keys()].sort((one, other) => entered.has(one) - entered.has(other))) if (!state.has(id)) visit(id);
}

function layers(nodes, edges) {
  const depth = new Map([...nodes.keys()].map((id) => [id, 0]));
  const hasCapture = [...nodes.values()].some((each) => each.kind === "capture");
  const entered = new Set(edges.map((each) => each.to));
  if (hasCapture) for (const [id, each] of nodes) if (each.kind === "topic" && !entered.has(id)) depth.set(id, 1);
  for (let turn = 0; turn < nodes.size; turn++) {
    let moved = false;
    for (const { from, to, back } of edges) if (!back && depth.get(to) <= depth.get(from)) { depth.set(to, depth.get(from) + 1); moved = true; }
    if (!moved) break;
  }
  const levels = [...new Set(depth.values())].sort((one, other) => one - other);
  const columns = levels.map((level) => [...depth].filter(([, each]) => each === level).map(([id]) => id));
  return { columns, column: new Map(columns.flatMap((ids, n) => ids.map((id) => [id, n]))) };
}

// An edge over several columns is given a place in each of them, so that it goes around the boxes there.
function links({ columns, column }, edges) {
  return edges.flatMap((edge) => {
    const steps = [edge.from];
    for (let n = column.get(edge.from) + 1; n < column.get(edge.to); n++) { const id = `~${edge.from}>${edge.to} ${n}`; columns[n].push(id); steps.push(id); }
    edge.steps = [...steps, edge.to];
    return edge.steps.slice(1).map((id, n) => ({ from: edge.steps[n], to: id }));
  });
}

// Nodes are put beside the mean of their neighbours, a few times from both sides.
function ordered(columns, edges) {
  const place = new Map();
  const number = () => columns.forEach((ids) => ids.forEach((id, n) => place.set(id, n - ids.length / 2)));
  columns.forEach((ids) => ids.sort());
  number();
  for (let turn = 0; turn < 6; turn++) {
    const sides = turn % 2 ? [...columns].reverse() : columns;
    for (const ids of sides) {
      const wanted = new Map(ids.map((id) => [id, mean(edges.filter((each) => each.to === id || each.from === id).map((each) => place.get(each.to === id ? each.from : each.to)), place.get(id))]));
      ids.sort((one, other) => wanted.get(one) - wanted.get(other));
      number();
    }
  }
}

const mean = (values, otherwise) => (values.length ? values.reduce((sum, each) => sum + each, 0) / values.length : otherwise);

function draw(box, { nodes, edges }) {
  findCircles(nodes, edges);
  const layered = layers(nodes, edges), { columns } = layered;
  ordered(columns, links(layered, edges));
  const high = (id) => (nodes.has(id) ? ROW : THIN), tall = columns.map((ids) => ids.reduce((sum, id) => sum + high(id), 0)), most = Math.max(ROW, ...tall);
  const size = { width: columns.length * WIDE + (columns.length - 1) * GAP + 4, height: TOP + most + 4 };
  const at = new Map();
  columns.forEach((ids, column) => {
    let y = TOP + (most - tall[column]) / 2 + 4;
    for (const id of ids) { at.set(id, { x: 2 + column * (WIDE + GAP), y, middle: y + (nodes.has(id) ? HIGH : THIN) / 2 }); y += high(id); }
  });
  const room = Math.max(320, box.clientWidth - 24), scale = Math.max(0.68, Math.min(1.1, room / size.width));
  const paths = edges.map((edge) => edgeShape(edge, at)), boxes = [...nodes.values()].map((each) => nodeShape(each, at.get(each.id)));
  const heads = columns.map((ids, n) => svg("text", { class: "column", x: 2 + n * (WIDE + GAP) + WIDE / 2, y: 14, "text-anchor": "middle" }, title(ids, nodes)));
  const map = svg("svg", { class: "map", width: size.width * scale, height: size.height * scale, viewBox: `0 0 ${size.width} ${size.height}`, role: "group", "aria-label": "Map of the system" }, heads, paths.map((each) => each.node), paths.map((each) => each.text), boxes.map((each) => each.node));
  box.replaceChildren(map);
  return {
    update(found) {
      const now = new Map(found.edges.map((each) => [`${each.from}>${each.to}`, each]));
      paths.forEach((each) => each.show(now.get(each.key)));
      boxes.forEach((each) => each.show(found.nodes.get(each.id)));
    },
  };
}

function title(ids, nodes) {
  ids = ids.filter((id) => nodes.has(id));
  const names = { capture: "captures", topic: "topics", flow: "flows", target: "targets", group: "groups" };
  return [...new Set(ids.map((id) => names[nodes.get(id).kind]))].join(" · ");
}

function edgeShape(edge, at) {
  const places = edge.steps.map((id) => at.get(id)), last = places.at(-1), [u, v] = [last.x, last.middle];
  const parts = places.slice(1).map((to, n) => {
    const from = places[n], x = from.x + WIDE, bend = to.x > x ? (to.x - x) / 2 : 60, over = n + 2 < places.length ? `H${to.x + WIDE}` : "";
    return `${n ? "" : `M${x},${from.middle}`}C${x + bend},${from.middle} ${to.x - bend},${to.middle} ${to.x},${to.middle}${over}`;
  });
  const first = places[0], over = last.x + WIDE; // back from the left side of a box to the right side of one before it
  const around = `M${first.x},${first.middle}C${first.x - 70},${first.middle} ${over + 70},${v} ${over},${v}`;
  const path = svg("path", { class: "edge", d: edge.back ? around : parts.join("") });
  const text = svg("text", { class: "lag", x: u - 8, y: v - 6, "text-anchor": "end" });
  return {
    key: `${edge.from}>${edge.to}`, node: path, text,
    show(now) {
      if (!now) return;
      const trouble = now.lag ? { warning: "warn", stalled: "bad", stopped: "bad", rewind: "bad" }[now.judgement] ?? "" : "";
      path.setAttribute("class", `edge ${now.rate > 0 && !now.lookup ? "flowing" : ""} ${now.lookup ? "lookup" : ""} ${trouble}`);
      text.setAttribute("class", `lag ${trouble === "bad" ? "bad" : trouble ? "" : "calm"}`);
      put(text, now.lag && !edge.back ? `lag ${brief(now.lag)}` : "");
    },
  };
}

function nodeShape(node, { x, y }) {
  const label = svg("text", { class: "label", x: x + 14, y: y + 21 }), sub = svg("text", { class: "sub", x: x + 14, y: y + 39 });
  const dot = svg("circle", { class: "dot", cx: x + WIDE - 12, cy: y + 14, r: 4 }), whole = svg("title");
  const group = svg("a", { href: node.href, tabindex: 0 }, whole, svg("rect", { class: "box", x, y, width: WIDE, height: HIGH, rx: 7 }), svg("rect", { class: `bar ${node.kind}`, x: x + 1, y: y + 8, width: 3.5, height: HIGH - 16, rx: 1.7 }), label, sub, dot);
  return {
    id: node.id, node: group,
    show(now) {
      if (!now) return;
      put(label, cut(now.label, now.state ? 18 : 21));
      put(sub, now.sub.length <= 27 ? now.sub : `${now.sub.slice(0, 26)}…`);
      put(whole, `${now.kind} ${now.label}${now.said ? `, ${now.said}` : ""}, ${now.sub}`);
      dot.setAttribute("class", `dot ${now.state}`);
      dot.setAttribute("r", now.state ? 4 : 0);
    },
  };
}

const brief = (count) => (count < 1000 || count >= 1e4 ? short(count) : `${(count / 1000).toFixed(1)}k`);
const cut = (text, most) => (text.length <= most ? text : `…${text.slice(text.length - most + 1).replace(/^\W+/, "")}`);
