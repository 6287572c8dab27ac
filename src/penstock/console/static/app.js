// The console: finds the page of the address, keeps it up to date, and shows how old the data is.
import { begin, live, session, state } from "./api.js";
import { failure, fill, h, put, retitle, setPill, svg } from "./dom.js";
import { seconds } from "./format.js";
import { overview } from "./pages/overview.js";
import { topic, topics } from "./pages/topics.js";
import { group, groups } from "./pages/groups.js";
import { flow, pipelines } from "./pages/pipelines.js";
import { schemas, subject } from "./pages/schemas.js";
import { capture, captures } from "./pages/captures.js";
import { view, views } from "./pages/views.js";
import { doctor } from "./pages/doctor.js";
import { audit } from "./pages/audit.js";
import { command, commands } from "./pages/commands.js";

const PAGES = [
  { path: "", title: "Overview", key: "o", make: overview, icon: "M3 5h5v5H3zM14 3h7v6h-7zM14 15h7v6h-7zM8 8h3v10h3M11 7h3" },
  { path: "topics", title: "Topics", key: "t", make: topics, one: topic, icon: "M4 6h16M4 12h16M4 18h10", count: (now) => now.topics.filter((each) => !each.internal).length },
  { path: "groups", title: "Groups", key: "g", make: groups, one: group, icon: "M8 11a3 3 0 1 0 0-6 3 3 0 0 0 0 6zM2.5 19a5.5 5.5 0 0 1 11 0M16 11a2.5 2.5 0 1 0 0-5M16.5 14.5a5 5 0 0 1 5 4.5", count: (now) => now.groups.length },
  { path: "pipelines", title: "Pipelines", key: "p", make: pipelines, one: flow, icon: "M3 7h6l3 5h9M3 17h6l3-5M18 9l3 3-3 3", count: (now) => now.flows.length },
  { path: "schemas", title: "Schemas", key: "s", make: schemas, one: subject, icon: "M8 3H5v18h3M16 3h3v18h-3M9 9h6M9 15h6" },
  { path: "captures", title: "Capture", key: "c", make: captures, one: capture, icon: "M4 6c0-4 16-4 16 0v12c0 4-16 4-16 0zM4 6c0 4 16 4 16 0M4 12c0 4 16 4 16 0", count: (now) => now.captures.length },
  { path: "views", title: "Views", key: "v", make: views, one: view, icon: "M3 5h18v14H3zM3 10h18M9 10v9" },
  { path: "doctor", title: "Doctor", key: "d", make: doctor, icon: "M3 12h4l3-7 4 14 3-7h4", count: (now) => now.health.counts.error + now.health.counts.warning, tone: (now) => ({ error: "bad", warning: "warn" })[now.health.state] },
  { path: "commands", title: "Commands", key: "m", make: commands, one: command, icon: "M4 5h16v14H4zM8 10l3 2.5L8 15M13 15h4", count: (now) => now.commands.filter((each) => each.state === "running").length },
  { path: "audit", title: "Audit log", key: "a", make: audit, icon: "M6 3h9l4 4v14H6zM14 3v5h5M9 13h7M9 17h7" },
];
const main = document.getElementById("main"), age = document.getElementById("age"), health = document.getElementById("health");
let page = null, isLive = false;

function navigation() {
  for (const each of PAGES) enlist(each);
}

function enlist(each) {
  each.counted = h("span", { class: "count" });
  const drawn = svg("svg", { viewBox: "0 0 24 24", "aria-hidden": "true" }, svg("path", { d: each.icon }));
  each.link = h("a", { href: `#/${each.path}` }, drawn, h("span", {}, each.title), each.counted);
  document.getElementById("nav").append(h("li", {}, each.link));
}

// Pages that the server has besides: their modules are loaded when they are opened first.
function further(described) {
  for (const each of described) {
    const page = { path: each.path, title: each.title, key: each.key, icon: each.icon };
    page.make = () => later(each.module, (found) => found.make());
    page.one = (name) => later(each.module, (found) => found.one(name));
    PAGES.push(page);
    enlist(page);
  }
}

function later(module, make) {
  const box = h("div", { class: "stack" });
  let made = null, isClosed = false;
  import(module).then((found) => {
    if (isClosed) return;
    made = make(found);
    fill(box, made.nodes);
    if (made.title) put(document.getElementById("title"), made.title);
    if (state.snapshot) made.update?.(state.snapshot);
  }).catch((error) => fill(box, failure(error)));
  return { nodes: [box], update: (now) => made?.update?.(now), close() { isClosed = true; made?.close?.(); } };
}

function show() {
  const [path = "", name, more] = location.hash.replace(/^#\/?/, "").split("/");
  const found = PAGES.find((each) => each.path === path) ?? PAGES[0];
  page?.close?.();
  for (const each of document.querySelectorAll("dialog")) each.close(); // it belongs to the page before
  let wanted = "";
  try { wanted = name === undefined ? "" : decodeURIComponent(name); } catch { /* not an address of ours */ }
  const make = wanted && found.one ? () => found.one(wanted, more) : found.make;
  const heading = wanted && found.one ? wanted : found.title;
  retitle(heading);
  for (const each of PAGES) each.link[each === found ? "setAttribute" : "removeAttribute"]("aria-current", "page");
  try {
    page = make();
    const back = wanted && found.one ? h("p", { class: "crumb" }, h("a", { href: `#/${found.path}` }, `← ${found.title}`)) : null;
    fill(main, back, page.nodes);
    if (state.snapshot) page.update?.(state.snapshot);
  } catch (error) {
    page = null;
    fill(main, failure(error));
  }
  window.scrollTo(0, 0);
}

function changed() {
  isLive = true;
  const now = state.snapshot, { state: worst, counts } = now.health;
  const words = worst === "ok" ? "healthy" : [[counts.error, "error"], [counts.warning, "warning"]].filter(([count]) => count).map(([count, name]) => `${count} ${name}${count > 1 ? "s" : ""}`).join(", ");
  setPill(health, worst, words);
  health.title = now.health.first;
  for (const each of PAGES) if (each.count) { put(each.counted, each.count(now) || ""); each.counted.className = `count ${each.tone?.(now) ?? ""}`; }
  const notice = document.getElementById("notice");
  notice.hidden = !now.unanswered.length;
  put(notice, now.unanswered.length ? `Not everything answers: ${now.unanswered.slice(0, 3).join("; ")}${now.unanswered.length > 3 ? " …" : ""}` : "");
  page?.update?.(now);
  tick();
}

function tick() {
  if (!state.snapshot) return;
  const old = Math.max(0, Math.round((Date.now() - state.received) / 1000));
  put(age, isLive ? (old < 3 ? "live" : `${seconds(old)} old`) : `reconnecting, ${seconds(old)} old`);
  age.className = `age ${isLive && old < 10 ? "" : "stale"}`;
  age.title = `The data is of ${new Date(state.snapshot.at * 1000).toISOString()}`;
}

const THEMES = ["auto", "light", "dark"], dark = matchMedia("(prefers-color-scheme: dark)");
function theme(name) {
  localStorage.setItem("theme", name);
  document.documentElement.dataset.theme = name === "auto" ? (dark.matches ? "dark" : "light") : name;
  const button = document.getElementById("theme");
  put(button, { auto: "◐", light: "☀", dark: "☾" }[name]);
  button.setAttribute("aria-label", `Colours: ${name === "auto" ? "as the system has them" : name}`);
  button.title = button.getAttribute("aria-label");
}

function keyboard() {
  let before = 0;
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || /^(input|textarea|select)$/i.test(event.target.tagName) || document.querySelector("dialog")) return;
    const goes = Date.now() - before < 1200 ? PAGES.find((each) => each.key === event.key) : null;
    if (goes) { location.hash = `#/${goes.path}`; before = 0; return; }
    if (event.key === "g") before = Date.now();
    if (event.key === "/") { const field = main.querySelector("input[type=search], input:not([type=checkbox])"); if (field) { event.preventDefault(); field.focus(); } }
    if (event.key === "?") help();
  });
}

function help() {
  const keys = [["/", "to the filter of the page"], ["g then a letter", ""], ...PAGES.map((each) => [`g ${each.key}`, each.title]), ["?", "this help"], ["Esc", "closes a dialog"]].filter(([, text]) => text);
  const box = h("dialog", { "aria-label": "Keyboard" }, h("div", { class: "head" }, "Keyboard"), h("div", { class: "inside" }, h("div", { class: "keys" }, keys.flatMap(([key, text]) => [h("span", {}, h("kbd", {}, key)), h("span", {}, text)]))), h("div", { class: "foot" }, h("button", { type: "button", onclick: () => box.close() }, "Close")));
  box.addEventListener("close", () => box.remove());
  document.body.append(box);
  box.showModal();
}

async function start() {
  navigation();
  theme(localStorage.getItem("theme") ?? "auto");
  dark.addEventListener("change", () => theme(localStorage.getItem("theme") ?? "auto"));
  document.getElementById("theme").addEventListener("click", () => theme(THEMES[(THEMES.indexOf(localStorage.getItem("theme") ?? "auto") + 1) % 3]));
  document.getElementById("help").addEventListener("click", help);
  document.querySelector(".skip").addEventListener("click", (event) => { event.preventDefault(); main.focus(); });
  keyboard();
  const begun = begin(); // both at once: each is a way to the server and back
  live(changed, () => { isLive = false; tick(); });
  try { await begun; } catch (error) { fill(main, failure(error)); return; }
  further(session.pages);
  document.getElementById("mode").hidden = !session.read_only;
  put(document.getElementById("about"), `Penstock ${session.version}${session.masks ? `; ${session.masks} fields are masked` : ""}`);
  addEventListener("hashchange", show);
  show();
  setInterval(tick, 1000);
}

start();
