// Commands that were begun from here: what each does, how far it is, and what came of it.
import { get } from "../api.js";
import { dialogue } from "../action.js";
import { empty, failure, fill, h, panel, pill, put, retitle } from "../dom.js";
import { seconds, time } from "../format.js";
import { table } from "../table.js";
import { auditShown } from "./audit_result.js";
import { gateOf, differenceShown } from "./difference.js";

const SAID = { "pipeline.start": "start", "flow.shadow": "shadow", "flow.discard": "discard", "flow.diff": "compare", "flow.swap": "swap", "flow.rollback": "roll back", "replica.audit": "audit" };
const TONES = { differs: "warning", stopped: "off" };

export const commandPill = (run) => pill(TONES[run.state] ?? run.state, run.state);
export const commandLink = (run, text) => h("a", { href: `#/commands/${encodeURIComponent(run.id)}` }, text ?? `${SAID[run.name] ?? run.name} ${run.subject}`);

export function commands() {
  const list = table("Commands", [
    { label: "Command", name: true, cell: (row) => commandLink(row), sig: (row) => row.id },
    { label: "State", cell: commandPill, sig: (row) => row.state },
    { label: "Began", cell: (row) => time(row.began), sig: (row) => row.began },
    { label: "Took", num: true, sort: (row) => row.seconds, cell: (row) => seconds(row.seconds) },
    { label: "By", wide: true, cell: (row) => row.user },
    { label: "What came of it", wide: true, cell: (row) => row.error || row.progress || "–" },
  ], (row) => row.id, empty("Nothing was begun from here yet", "Starting a pipeline, comparing and swapping versions and auditing replicas go on here, also without a browser."));
  return { nodes: [panel("Commands", list)], update(now) { list.update(now.commands); } };
}

export function command(id) {
  const problem = h("div"), result = h("div", { class: "stack" }), log = h("pre", { class: "text log", tabindex: 0, "aria-label": "What it has written" });
  const line = h("code", { class: "command" }), state = h("span"), facts = h("span", { class: "note" });
  const stop = h("button", { type: "button", onclick: () => dialogue({ title: "Stop the command", action: "command.stop", inside: h("p", {}, "Its process is asked to end."), values: () => ({ id }), verb: "Stop it", danger: true, done: refresh }) }, "Stop …");
  const head = panel("Command", h("div", { class: "body stack" }, h("div", {}, line), facts));
  head.head.append(state, h("span", { class: "spacer" }), stop);
  const written = panel("What it has written", log);
  let timer = null, isOver = false;
  stop.hidden = true;

  async function refresh() {
    try {
      const found = await get("command", { name: id });
      fill(problem, found.state === "failed" ? failure({ message: found.error, hint: found.hint }) : null);
      retitle(`${SAID[found.name] ?? found.name} ${found.subject}`);
      put(line, found.line);
      fill(state, commandPill(found));
      fill(facts, "begun by ", found.user, ", ", time(found.began), `, ${found.state === "running" ? "for" : "took"} ${seconds(found.seconds)}`, found.state === "running" ? ". It goes on if you leave this page." : ".");
      stop.hidden = found.state !== "running" || !found.may_be_stopped;
      written.hidden = !found.log && found.state !== "running";
      const isAtEnd = log.scrollTop + log.clientHeight >= log.scrollHeight - 4;
      if (put(log, found.log || (found.state === "running" ? "Nothing yet: Python and Spark take some seconds to start." : "")) && isAtEnd) log.scrollTop = log.scrollHeight;
      if (found.state !== "running" && !isOver) { isOver = true; fill(result, shown(found)); clearInterval(timer); }
    } catch (error) { fill(problem, failure(error)); }
  }
  refresh();
  timer = setInterval(refresh, 1000);
  return { nodes: [problem, head, result, written], close() { clearInterval(timer); } };
}

function shown(run) {
  if (!run.document) return run.state === "done" ? after(run) : null;
  if (run.name === "replica.audit") return auditShown(run.document);
  const [found] = run.document;
  if (run.name === "flow.diff") return [differenceShown(found, gateOf(run.line)), after(run)];
  const isIn = h("p", { class: found.swapped ? "done" : "failure" }, found.swapped ? "The new version is in place." : "Nothing was swapped: more keys differ than the gate allows.");
  return [isIn, found.difference ? differenceShown(found.difference, gateOf(run.line)) : null, after(run)];
}

const NEXT = { "flow.discard": "The shadow is gone.", "flow.rollback": "The former version is back in place: start the pipeline with its code.", "flow.swap": "Start the pipeline with the module of the new version.", "flow.diff": "" };

function after(run) {
  const [pipeline] = run.subject.split(".");
  if (!run.name.startsWith("flow.")) return null;
  return h("p", { class: "note" }, NEXT[run.name] ? [NEXT[run.name], " "] : null, h("a", { href: `#/pipelines/${encodeURIComponent(run.subject)}` }, `Versions of ${run.subject}`), " · ", h("a", { href: "#/pipelines" }, `pipeline ${pipeline}`));
}
