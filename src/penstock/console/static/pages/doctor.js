// Doctor: what is wrong, the numbers that show it, the likely cause, and what to do.
import { get } from "../api.js";
import { dialogue } from "../action.js";
import { empty, failure, fill, h, panel, pill, put, withCode } from "../dom.js";
import { time } from "../format.js";

const TONES = { error: "error", warning: "warning", info: "info" };

export function doctor() {
  const shown = h("div"), when = h("span", { class: "note spacer" });
  const again = h("button", { type: "button", onclick: () => load(true) }, "Examine again");
  const box = panel("Findings", shown);
  let isExamined = false;
  box.head.append(when, again);
  fill(shown, empty("Examining …", "Topics, groups, flows, transactions, slots and disks are looked at; it takes some seconds."));

  // What is known already is there at once; an examination takes seconds, and adds to it.
  async function showKnown() {
    try {
      const found = await get("doctor", { known: 1 });
      if (!isExamined && found.findings.length) fill(shown, found.findings.map((each) => finding({ ...each, fix: null }, () => load(true))));
    } catch { /* the examination says why */ }
  }

  async function load(anew) {
    again.disabled = true;
    put(when, "examining …");
    try {
      const found = await get("doctor", { anew: anew ? 1 : "" });
      isExamined = true;
      fill(when, "examined at ", time(found.at));
      fill(shown, found.findings.length ? found.findings.map((each) => finding(each, () => load(true))) : empty("Nothing is wrong", "Every check of the doctor passed."));
    } catch (error) { fill(shown, failure(error)); put(when, ""); }
    again.disabled = false;
  }
  showKnown();
  load(false);
  return { nodes: [box] };
}

function finding(each, again) {
  const numbers = Object.entries(each.evidence).map(([name, value]) => h("span", { class: "badge" }, `${name.replaceAll("_", " ")} ${typeof value === "number" ? value.toLocaleString("en") : value}`));
  const fix = each.fix ? h("button", { type: "button", onclick: () => dialogue({ title: `Fix ${each.subject}`, action: "doctor.fix", inside: h("p", {}, "A safe change: ", h("span", { class: "command mono" }, each.fix.command)), values: () => ({ fix: each.fix.action, subject: each.fix.subject }), verb: "Fix it", done: again }) }, "Fix …") : null;
  return h("article", { class: "finding" },
    h("div", { class: "head" }, pill(TONES[each.severity], each.severity), h("span", { class: "strong mono" }, each.id), h("span", { class: "dim" }, each.subject)),
    h("p", { class: "summary" }, each.summary),
    numbers.length ? h("div", { class: "chips" }, numbers) : null,
    h("dl", {}, each.cause ? [h("dt", {}, "Why"), h("dd", {}, withCode(each.cause))] : null, each.hint ? [h("dt", {}, "Do"), h("dd", {}, withCode(each.hint))] : null),
    fix ? h("div", {}, fix) : null);
}
