// Pipelines: their flows with rates, latency, watermark and state; and one flow in all its figures.
import { get, state } from "../api.js";
import { dialogue } from "../action.js";
import { empty, failure, fill, h, panel, pill, put, tile } from "../dom.js";
import { bytes, number, rate, seconds, short, time } from "../format.js";
import { drawMap } from "../map.js";
import { chart, spark } from "../spark.js";
import { table } from "../table.js";
import { commandLink } from "./commands.js";
import { versions } from "./versions.js";

const link = (path, name, text) => h("a", { href: `#/${path}/${encodeURIComponent(name)}` }, text ?? name);

export function pipelines() {
  const all = h("div", { class: "stack" }), lists = new Map();
  const nothing = panel("Pipelines", empty("No pipeline has run yet", "Describe one in a module and run it; its flows appear here within seconds.", "penstock run shop -m shop.py"));
  return {
    nodes: [all, nothing],
    update(now) {
      const names = [...new Set([...now.flows.map((flow) => flow.pipeline), ...now.pipelines.map((each) => each.name)])];
      nothing.hidden = Boolean(names.length);
      for (const name of names) if (!lists.has(name)) { lists.set(name, pipelinePanel(name)); all.append(lists.get(name).node); }
      for (const [name, each] of lists) {
        if (names.includes(name)) each.update(now);
        else { each.node.remove(); lists.delete(name); }
      }
    },
  };
}

function pipelinePanel(name) {
  const list = table(`Flows of ${name}`, [
    { label: "Flow", name: true, sort: (row) => row.name, cell: (row) => h("span", {}, h("a", { href: `#/pipelines/${encodeURIComponent(row.label)}${row.beside ? `/${row.generation}` : ""}` }, row.name), h("span", { class: "dim" }, ` v${row.version} `), row.mode === "realtime" ? h("span", { class: "badge" }, "real time") : null, row.beside ? h("span", { class: "badge accent" }, row.beside) : null), sig: (row) => `${row.label} ${row.beside} ${row.version}` },
    { label: "State", sort: (row) => row.state, cell: (row) => pill(row.state), sig: (row) => row.state },
    { label: "Rate", num: true, sort: (row) => row.rate, cell: (row) => rate(row.rate) },
    { label: "Batches", num: true, wide: true, cell: (row) => spark(row.trend, `rows of ${row.name}`), sig: (row) => row.trend.join() },
    { label: "Waiting", num: true, sort: (row) => row.behind, cell: (row) => short(row.behind) },
    { label: "p50", num: true, sort: (row) => row.p50, cell: (row) => bound(row.p50), wide: true },
    { label: "p99", num: true, sort: (row) => row.p99, cell: (row) => bound(row.p99), wide: true },
    { label: "Watermark", num: true, sort: (row) => row.delay, cell: (row) => (row.delay === null ? "–" : `−${seconds(row.delay)}`), wide: true },
    { label: "State size", num: true, sort: (row) => row.state_bytes, cell: (row) => (row.state_rows !== 0 ? bytes(row.state_bytes) : "–"), wide: true },
    { label: "Late · bad", num: true, sort: (row) => row.late + row.malformed, cell: (row) => `${short(row.late)} · ${short(row.malformed)}`, wide: true },
  ], (row) => `${row.label} ${row.generation}`);
  const box = h("div", { class: "map-box", tabindex: 0, role: "group", "aria-label": `Graph of ${name}` }), draw = drawMap(box);
  const said = h("div"), node = panel(name, said, box, list), note = h("span", { class: "note" });
  const start = h("button", { type: "button", class: "primary", onclick: () => begin(name) }, "Start …");
  const stop = h("button", { type: "button", onclick: () => dialogue({ title: `Stop pipeline ${name}`, action: "pipeline.stop", inside: h("p", {}, "Its process is asked to end; each flow ends with its batch, and goes on from there when it is started again."), values: () => ({ name }), verb: "Stop it", danger: true }) }, "Stop …");
  node.head.append(note, h("span", { class: "spacer" }), start, stop);
  let shown = "";
  const update = (now) => {
    const known = now.pipelines.find((each) => each.name === name), flows = rowsOf(name, known, now);
    list.update(flows);
    put(note, known?.process ? (known.held_by === "run" ? `process ${known.process} on this machine` : `held by a ${known.held_by}, process ${known.process}`) : "not run on this machine");
    start.hidden = !known || known.process !== null || !Object.keys(known.modules).length;
    stop.hidden = known?.held_by !== "run" && known?.held_by !== "replay";
    const runs = now.commands.filter((each) => each.subject === name || each.subject.startsWith(`${name}.`)), sig = runs.map((each) => `${each.id} ${each.state}`).join() + Boolean(known?.process);
    if (sig !== shown) { shown = sig; fill(said, news(name, known, runs)); }
    const own = new Set(flows.map((flow) => flow.group));
    draw({ ...now, flows: flows.filter((each) => each.group), captures: [], replicas: [], groups: now.groups.filter((each) => own.has(each.group)) });
    box.hidden = !flows.some((each) => each.group);
  };
  return { node, update };
}

// The flows of a pipeline that were heard of, and those that are declared and never ran.
function rowsOf(name, known, now) {
  const heard = now.flows.filter((flow) => flow.pipeline === name), labels = new Set(heard.map((each) => each.label));
  const never = (known?.flows ?? []).filter((each) => !labels.has(each.label)).map((each) => ({ label: each.label, name: each.name, generation: 0, state: "never run", version: Object.values(known.modules).map((flows) => flows[each.name])[0] ?? "", rate: 0, trend: [], behind: 0, p50: null, p99: null, delay: null, state_rows: 0, state_bytes: 0, late: 0, malformed: 0, beside: "" }));
  return [...heard, ...never];
}

// What was begun of it: commands at work, and a start that has failed since it ran last.
function news(name, known, runs) {
  const atWork = runs.filter((each) => each.state === "running" && each.name !== "pipeline.start"), last = runs.find((each) => each.name === "pipeline.start" && each.subject === name);
  const lines = atWork.map((each) => h("p", { class: "note body" }, "At work: ", commandLink(each)));
  if (last?.state === "failed" && !known?.process) lines.unshift(h("div", { class: "body" }, failure({ message: `It was started by ${last.user}, and failed: ${last.error}`, hint: last.hint }), h("p", { class: "note" }, commandLink(last, "What it has written"))));
  if (last?.state === "running" && !known?.process) lines.unshift(h("p", { class: "note body" }, "It is being started: ", commandLink(last, "see how")));
  return lines;
}

function begin(name) {
  const known = state.snapshot.pipelines.find((each) => each.name === name), names = Object.keys(known.modules);
  const module = h("select", {}, names.map((each) => h("option", { value: each }, each)));
  const inside = h("div", { class: "stack" }, h("p", {}, "Its flows run in a process of their own, each from where it was. It goes on when the console ends."), names.length > 1 ? h("div", { class: "form" }, h("label", {}, "Module", module)) : null);
  dialogue({ title: `Start pipeline ${name}`, action: "pipeline.start", inside, values: () => ({ pipeline: name, module: module.value }), verb: "Start it", eager: true });
}

const bound = (value) => (value === null ? "–" : `≤ ${seconds(value)}`);

export function flow(label, generation) {
  const shown = versions(label);
  const tiles = { state: tile("State"), rate: tile("Rate"), lag: tile("Lag"), p50: tile("Latency p50"), p99: tile("Latency p99"), delay: tile("Watermark"), state_size: tile("State kept"), late: tile("Late, dropped"), malformed: tile("Malformed"), restarts: tile("Restarts") };
  const charts = { rows: chart("Rows a second", rate), behind: chart("Records waiting", short), batch: chart("Batch", seconds), delay: chart("Watermark behind the clock", seconds), size: chart("State kept", bytes) };
  const way = h("div", { class: "body" }), parts = h("div", { class: "body" }), troubles = h("div", { class: "body" }), phases = h("div"), problem = h("div"), limited = h("span", { class: "note spacer" });
  const list = table("Phases of the last batch", [{ label: "Phase", name: true, cell: (row) => row.name }, { label: "Time", num: true, sort: (row) => row.took, cell: (row) => seconds(row.took) }], (row) => row.name, empty("Spark has not reported a batch yet"));
  phases.append(list);
  const where = panel("Where a batch's time goes", parts);
  where.head.append(limited);
  const trouble = panel("Trouble", troubles);
  let timer = null;

  async function refresh() {
    if (state.snapshot && !state.snapshot.flows.some((each) => each.label === label)) {
      fill(problem, empty("It has not run yet", "Start its pipeline, and its figures appear here."));
      return;
    }
    try {
      const found = await get("flow", { name: label, generation: generation ?? atWork(label) });
      fill(problem);
      showTiles(tiles, found);
      showCharts(charts, found);
      fill(way, route(found));
      fill(parts, found.parts && Object.keys(found.parts).length ? bars(found.parts) : h("p", { class: "note" }, found.mode === "realtime" ? "In real time, the parts of a batch are not known apart." : "No batch with results yet."));
      limited.textContent = found.bottleneck;
      list.update(Object.entries(found.phases).sort((one, other) => other[1] - one[1]).map(([name, took]) => ({ name, took })));
      fill(troubles, found.troubles.length ? [...found.troubles].reverse().map((each) => h("p", {}, time(each.at), " ", each.text)) : h("p", { class: "note" }, "Nothing has gone wrong since it was started."));
    } catch (error) { fill(problem, failure(error)); }
  }
  refresh();
  timer = setInterval(refresh, 2000);
  return {
    nodes: [problem, h("div", { class: "tiles five" }, Object.values(tiles)), shown, panel("Its way", way), h("div", { class: "charts" }, Object.values(charts)), h("div", { class: "row" }, where, panel("Phases of the last batch", phases)), trouble],
    update(now) { shown.update(now); },
    close() { clearInterval(timer); },
  };
}

// The generation that is at work, if that is known; otherwise the one that was heard of last.
function atWork(label) {
  const found = state.snapshot?.pipelines.flatMap((each) => each.flows).find((each) => each.label === label);
  return found?.versions?.at_work ?? "";
}

function showTiles(tiles, found) {
  const last = found.samples.at(-1);
  tiles.state.show(found.state, `${found.process}, version ${found.version}`);
  tiles.rate.show(rate(found.rate), `${number(found.rows)} rows, ${number(found.batches)} batches`);
  tiles.lag.show(found.lag ? number(found.lag.events) : "–", found.lag ? `oldest ${seconds(found.lag.seconds)}` : "no positions yet");
  tiles.p50.show(bound(found.percentiles.p50), "from the log to results");
  tiles.p99.show(bound(found.percentiles.p99), found.percentiles.p90 === null ? "" : `p90 ${bound(found.percentiles.p90)}`);
  tiles.delay.show(found.watermark_delay === null ? "none" : seconds(found.watermark_delay), found.watermark_delay === null ? "it has no event time" : "behind the clock");
  tiles.state_size.show((last?.state_rows ?? last?.state_bytes) ? bytes(last.state_bytes) : "none", last?.state_rows ? `${number(last.state_rows)} rows` : "");
  tiles.late.show(number(found.late), "rows behind the watermark");
  tiles.malformed.show(number(found.malformed), "in the dead letters");
  tiles.restarts.show(number(found.restarts), `${found.mode}, ${found.guarantee}`);
}

function showCharts(charts, found) {
  const samples = found.samples, apart = (n) => Math.max(1, samples[n].at - (samples[n - 1]?.at ?? samples[n].at - 10));
  charts.rows.show(samples.map((each, n) => each.rows / apart(n)), found.rate);
  charts.behind.show(samples.map((each) => each.behind));
  charts.batch.show(samples.map((each) => each.seconds));
  const marked = samples.filter((each) => each.watermark !== null);
  charts.delay.hidden = !marked.length;
  charts.delay.show(marked.map((each) => Math.max(0, each.at - each.watermark)), found.watermark_delay);
  charts.size.hidden = !samples.some((each) => each.state_rows ?? each.state_bytes);
  charts.size.show(samples.map((each) => each.state_bytes));
}

function route(found) {
  const names = (list, path) => list.map((each, n) => [n ? ", " : "", link(path, each)]);
  return h("p", {}, names(found.reads, "topics"), found.looks_up.length ? [" (looks up ", names(found.looks_up, "topics"), ")"] : "", " → ", h("span", { class: "strong" }, found.label), " → ", found.writes.length ? names(found.writes, "topics") : "", found.target.startsWith("topic ") ? "" : [found.writes.length ? ", " : "", h("span", { class: "strong" }, found.target)], h("span", { class: "dim" }, found.interval ? `  ·  every ${interval(found.interval)}` : ""));
}

// Spark's spelling of a duration, as people write it.
function interval(text) {
  const found = /^(\d+) milliseconds$/.exec(text);
  return found ? seconds(Number(found[1]) / 1000) : text;
}

function bars(parts) {
  const names = Object.keys(parts), all = Math.max(1e-9, names.reduce((sum, each) => sum + parts[each], 0));
  const strip = h("div", { class: "bars", role: "img", "aria-label": names.map((each) => `${each} ${seconds(parts[each])}`).join(", ") });
  names.forEach((each, n) => { const bar = h("span", { class: `bar-${n}`, title: each }); bar.style.width = `${(100 * parts[each]) / all}%`; strip.append(bar); });
  return [strip, h("div", { class: "legend" }, names.map((each, n) => h("span", {}, h("i", { class: `bar-${n}` }), `${each} ${seconds(parts[each])}`)))];
}
