// Experiment 4: keys on six partitions and the members that read them; or three brokers, one of which is killed.
import { h, put } from "/static/dom.js";
import { number } from "/static/format.js";
import { box, facts, figure, milliseconds, stage } from "./boxes.js";

const PARTITIONS = 6, MOST = 8, BROKERS = [1, 2, 3];
const ACKS = "acks on three brokers";

export function picture() {
  const group = groupPicture(), brokers = brokerPicture();
  brokers.node.hidden = true;
  const node = h("div", { class: "partitions" }, group.node, brokers.node);
  return {
    node,
    draw(frame) {
      const isAcks = (frame.figures.part ?? frame.values.part) === ACKS;
      group.node.hidden = isAcks;
      brokers.node.hidden = !isAcks;
      (isAcks ? brokers : group).draw(frame);
    },
    close() { group.close(); brokers.close(); },
  };
}

function groupPicture() {
  const shown = stage("Keys, partitions and the members of a group", "partitions");
  shown.node.classList.add("partitions-stage");
  const dots = h("div", { class: "partitions-keys", role: "img", "aria-label": "keys" });
  const keys = box("Keys", "off", h("p", { class: "note" }, "The colour is the partition that the key's hash names."), dots);
  const lanes = Array.from({ length: PARTITIONS }, (_, n) => lane(n));
  const members = Array.from({ length: MOST }, (_, n) => member(n + 1));
  const state = facts(["consumers", figure("consumers", number)], ["idle", figure("idle", number)], ["rebalances", figure("rebalances", number)], ["partitions moved", figure("moved", number)], ["last pause", figure("last_pause", milliseconds)], ["longest pause", figure("worst_pause", milliseconds)], ["lag", figure("lag", number)]);
  shown.node.append(keys, h("div", { class: "partitions-lanes" }, lanes.map((each) => each.node)), h("div", { class: "partitions-members" }, members.map((each) => each.node)));
  lanes.forEach((each, n) => shown.join(`in-${n}`, keys, each.node, `p${n} faint`));
  const owners = new Array(PARTITIONS).fill(0);
  let known = "";

  function draw(frame) {
    const found = frame.figures;
    state.draw(found);
    const most = Math.max(20, ...(found.partitions ?? []).map((each) => each.lag));
    (found.partitions ?? []).forEach((each, n) => { lanes[n].draw(each, most); relink(n, each.owner); });
    const there = new Map((found.members ?? []).map((each) => [each.number, each]));
    for (const each of members) each.draw(there.get(each.number), owners);
    drawKeys(found.keys ?? []);
    for (const event of frame.events) move(event);
  }
  function relink(n, owner) {
    if (owners[n] === owner) return;
    shown.unjoin(`out-${n}`);
    if (owner) shown.join(`out-${n}`, lanes[n].node, members[owner - 1].node, `p${n}`);
    owners[n] = owner;
    shown.lay();
  }
  function move(event) {
    if (event.in !== undefined) shown.send(`in-${event.in}`, `p${event.in}`, { ms: 500 });
    else if (owners[event.out] === event.to) shown.send(`out-${event.out}`, `p${event.out}`, { ms: 450 });
  }
  function drawKeys(found) {
    const text = found.map((each) => each.join(":")).join(" ");
    if (text === known) return;
    known = text;
    dots.replaceChildren(...found.map(([key, at]) => h("span", { class: `p${at}`, title: `${key} → partition ${at}` })));
    const counts = Array.from({ length: PARTITIONS }, (_, n) => found.filter(([, at]) => at === n).length);
    dots.setAttribute("aria-label", `${found.length} keys; by partition: ${counts.join(", ")}`);
  }
  return { node: h("div", { class: "partitions-part" }, state, shown.node), draw, close: shown.close };
}

function lane(n) {
  const fill = h("i"), text = h("span", { class: "partitions-lag" }, "–");
  const node = h("div", { class: `partitions-lane p${n}` }, h("strong", {}, `partition ${n}`), text, h("b", { "aria-hidden": "true" }, fill));
  return {
    node,
    draw(each, most) {
      put(text, `${number(each.end)} · lag ${number(each.lag)}`);
      fill.style.width = `${Math.min(100, (each.lag / most) * 100)}%`;
      node.classList.toggle("orphan", !each.owner);
    },
  };
}

function member(n) {
  const text = h("span", { class: "note" }, ""), node = h("div", { class: "partitions-member absent" }, h("strong", {}, `consumer ${n}`), text);
  return {
    number: n,
    node,
    draw(found, owners) {
      const own = owners.flatMap((owner, at) => (owner === n ? [at] : []));
      node.classList.toggle("absent", !found);
      node.classList.toggle("idle", Boolean(found) && !own.length);
      put(text, !found ? "not there" : own.length ? `reads ${own.join(", ")}` : "idle: no partition left");
    },
  };
}

function brokerPicture() {
  const shown = stage("A producer, the leader of a partition and its followers", "partitions");
  shown.node.classList.add("brokers-stage");
  const said = h("p", { class: "lab-wait" }, "starting");
  const producer = box("Producer", "flow", facts(["acknowledged", figure("acknowledged", number)]));
  const brokers = BROKERS.map((n) => broker(n));
  const state = facts(["acknowledged", figure("acknowledged", number)], ["of them in the log", figure("found", number)], ["lost", figure("lost", number)], ["without a leader", figure("outage", (value) => `${value} s`)]);
  const rounds = h("tbody"), table = h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Leaders killed" }, h("table", {}, h("thead", {}, h("tr", {}, ["acks", "acknowledged", "in the log", "lost", "leader", "no leader for"].map((each) => h("th", { scope: "col" }, each)))), rounds));
  shown.node.append(producer, h("div", { class: "brokers-row" }, brokers.map((each) => each.node)));
  let leader = 0, drawn = 0;

  function draw(frame) {
    const found = frame.figures;
    put(said, found.stage ?? "starting");
    producer.querySelector("dl").draw(found);
    state.draw(found);
    for (const each of brokers) each.draw((found.brokers ?? []).find((one) => one.number === each.number), found.stage ?? "");
    const leads = (found.brokers ?? []).find((each) => each.leads && each.state === "running")?.number ?? 0;
    if (leads !== leader) relink(leads);
    for (const _ of frame.events) { shown.send("leader", "flow", { ms: 300 }); if (!(found.stage ?? "").includes("held")) for (const n of BROKERS) shown.send(`copy-${n}`, "topic", { delay: 300, ms: 400 }); }
    if ((found.rounds ?? []).length !== drawn) { drawn = found.rounds.length; rounds.replaceChildren(...found.rounds.map(row)); }
  }
  function relink(leads) {
    for (const name of ["leader", ...BROKERS.map((n) => `copy-${n}`)]) shown.unjoin(name);
    leader = leads;
    if (!leads) return;
    const at = brokers[leads - 1].node;
    shown.join("leader", producer, at);
    for (const each of brokers) if (each.number !== leads) shown.join(`copy-${each.number}`, at, each.node, "weak");
    shown.lay();
  }
  return { node: h("div", { class: "partitions-part" }, said, state, shown.node, table), draw, close: shown.close };
}

function broker(n) {
  const pill = h("span", { class: "pill off" }, "starting"), note = h("p", { class: "note" }, "");
  const node = box(`Broker ${n}`, "topic", pill, note);
  return {
    number: n,
    node,
    draw(found, stage) {
      const isHeld = stage.includes("held") && found && !found.leads;
      const isDead = found && found.state !== "running";
      const [tone, text] = !found ? ["off", "starting"] : isDead ? ["bad", "killed"] : isHeld ? ["warn", "held"] : found.leads ? ["ok", "leader"] : ["off", "follower"];
      pill.className = `pill ${tone}`;
      put(pill, text);
      put(note, !found || isDead ? " " : found.in_sync ? "in sync" : "not in sync");
      node.classList.toggle("dead", Boolean(isDead));
    },
  };
}

const row = (each) => h("tr", {}, h("td", {}, each.acks), ...[each.acknowledged, each.found].map((value) => h("td", { class: "num" }, number(value))), h("td", { class: `num strong ${each.lost ? "brokers-lost" : ""}` }, number(each.lost)), h("td", {}, `${each.leader}, then ${each.then}`), h("td", { class: "num" }, `${each.outage} s`));
