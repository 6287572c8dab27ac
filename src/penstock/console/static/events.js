// Events as lines that open: place, time, key, and the value as JSON text.
import { h } from "./dom.js";
import { time } from "./format.js";

export function eventLine(event) {
  const value = "event" in event ? event.event : event.deleted ? null : event.value;
  const text = event.deleted ? "(deleted)" : typeof value === "string" ? value : JSON.stringify(value);
  const said = event.letter?.error ?? event.error;
  const summary = h("summary", {},
    h("span", { class: "dim" }, time(event.written)),
    h("span", { class: "dim mono" }, `${event.partition} : ${event.offset}`),
    h("span", { class: "key" }, event.key ?? "–"),
    h("span", { class: "value mono" }, said ? h("span", { class: "badge bad" }, said.slice(0, 120)) : null, said ? " " : "", text.slice(0, 400)));
  const box = h("details", { class: "event" }, summary);
  box.addEventListener("toggle", () => { if (box.open && !box.querySelector("pre")) box.append(h("pre", {}, JSON.stringify(event, null, 2))); });
  return box;
}
