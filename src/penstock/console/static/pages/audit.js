// Audit log: who did what from the console and by the doctor, the newest first.
import { get } from "../api.js";
import { empty, failure, fill, h, panel, pill } from "../dom.js";
import { time } from "../format.js";
import { table } from "../table.js";

export function audit() {
  const list = table("Actions", [
    { label: "Time", cell: (row) => time(row.at, true), sig: (row) => row.at },
    { label: "Who", cell: (row) => row.user },
    { label: "Action", name: true, cell: (row) => row.action },
    { label: "On", cell: (row) => row.subject },
    { label: "Outcome", cell: (row) => h("span", {}, pill(/^(done|begun)\b/.exec(row.outcome)?.[0] ?? "failed"), " ", String(row.outcome).replace(/^(done|failed|begun):? ?/, "")), sig: (row) => row.outcome },
  ], (row) => row.number, empty("Nobody has changed anything from here", "Every action of the console and every fix of the doctor is written down."));
  const problem = h("div");
  get("audit").then((found) => list.update(found.lines.map((each, number) => ({ ...each, number }))), (error) => fill(problem, failure(error)));
  return { nodes: [problem, panel("Actions", list)] };
}
