// A dialog for an action: what would happen is shown first, then it can be done.
import { failure, fill, h, withCode } from "./dom.js";
import { act, session } from "./api.js";

// Asks with `values()` for a dry run, shows it, and does it when it is confirmed; `eager` asks at once.
// What was seen in the dry run goes along: if the system is another one since, nothing is done.
export function dialogue({ title, action, inside, values, verb = "Do it", danger = false, eager = false, done = () => {} }) {
  const shown = h("div", { "aria-live": "polite" });
  const check = h("button", { type: "button", onclick: () => run(true) }, "Check");
  const confirm = h("button", { type: "button", class: danger ? "danger" : "primary", disabled: true, onclick: () => run(false) }, verb);
  const close = h("button", { type: "button", onclick: () => box.close() }, "Close");
  const note = session.read_only ? h("p", { class: "dim" }, "This console is read-only: the action can be checked, not carried out.") : null;
  const box = h("dialog", { "aria-label": title }, h("div", { class: "head" }, title), h("div", { class: "inside" }, inside, note, shown), h("div", { class: "foot" }, close, check, confirm));
  let seen = "", asked = 0;
  box.addEventListener("close", () => box.remove());
  box.addEventListener("input", () => { confirm.disabled = true; asked += 1; }); // what was checked is not this any more

  async function run(dry) {
    check.disabled = confirm.disabled = true;
    const own = (asked += 1);
    if (dry) fill(shown, h("p", { class: "dim" }, "checking …"));
    try {
      const found = await act(action, dry, { ...values(), ...(dry ? {} : { seen }) });
      if (found.command && !dry) { box.close(); location.hash = `#/commands/${found.command}`; return; }
      fill(shown, h("div", { class: dry ? "said" : "done" }, withCode(found.summary)), rows(found.rows));
      if (dry) { seen = found.seen ?? ""; confirm.disabled = session.read_only || own !== asked; }
      else done(found);
    } catch (error) {
      fill(shown, failure(error));
    }
    check.disabled = false;
  }
  document.body.append(box);
  box.showModal();
  if (eager || !inside?.querySelector?.("input, textarea, select")) run(true);
  return box;
}

function rows(found = []) {
  if (!found.length) return null;
  const names = Object.keys(found[0]);
  const line = (row) => h("tr", {}, names.map((name) => h("td", { class: typeof row[name] === "number" ? "num" : null }, row[name] ?? "–")));
  return h("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": "What it is about" }, h("table", {}, h("thead", {}, h("tr", {}, names.map((name) => h("th", { scope: "col" }, name)))), h("tbody", {}, found.map(line))));
}
