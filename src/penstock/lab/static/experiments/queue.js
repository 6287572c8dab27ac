// The same tasks twice: a row for each key, a square for each task, and the workers on theirs.
import { h } from "/static/dom.js";
import { number } from "/static/format.js";
import { figure, figures } from "../figure.js";
import { rounded, stage } from "../stage.js";

const SIDES = [["queue", "Queue: each task to any worker", "flow"], ["log", "Log: each partition to one consumer", "topic"]];
const LOOK = { ".": ["sunk", "waits"], w: ["accent", "in work"], d: ["ok", "done"], o: ["warn", "done out of order"], r: ["group", "handed out again"], x: ["bad", "again, and out of order"] };
const WORKERS = ["topic", "group", "capture", "flow"];
const taken = (value) => `${value.toFixed(value < 10 ? 2 : 1)} s`;

export function picture() {
  const sides = SIDES.map(([kind, title, tone]) => side(kind, title, tone));
  const legend = h("p", { class: "lab-legend" }, Object.values(LOOK).map(([tone, text]) => h("span", {}, h("i", { class: `lab-swatch ${tone}` }), text)));
  return {
    node: h("div", { class: "stack" }, h("div", { class: "lab-sides" }, sides.map((each) => each.node)), legend),
    draw(frame) { for (const each of sides) each.draw(frame); },
    close() { for (const each of sides) each.close(); },
  };
}

function side(kind, title, tone) {
  let rows = [], workers = [], total = 0;
  const bursts = [];
  const grid = stage(196, `${title}: tasks by key`, paint);
  const tiles = {
    done: figure(`${kind}_done`, "Done", number, tone),
    redelivered: figure(`${kind}_redelivered`, "Handed out again", number, "group"),
    out_of_order: figure(`${kind}_out_of_order`, "Out of order in their key", number, "warn"),
    takeover: figure(`${kind}_takeover`, "Task taken over after", taken),
    killed: figure(`${kind}_killed`, "Workers killed", number, "bad"),
    again: figure(`${kind}_again`, "Replayed", number, "ok"),
  };

  function paint({ ctx, width, height, color, step, isCalm }) {
    const keys = rows.length || 6, each = rows[0]?.length || 50, left = 42, top = 24;
    const wide = (width - left - 4) / each, high = (height - top - 4) / keys, place = ([key, n]) => [left + n * wide + wide / 2, top + key * high + high / 2];
    ctx.fillStyle = color("muted");
    ctx.textAlign = "left";
    ctx.fillText("tasks in the order of their numbers →", left, 10);
    for (let key = 0; key < keys; key += 1) {
      ctx.fillStyle = color("muted");
      ctx.fillText(`key ${key}`, 0, top + key * high + high / 2);
      for (let n = 0; n < each; n += 1) {
        const letter = rows[key]?.[n] ?? ".";
        ctx.fillStyle = color(LOOK[letter][0]);
        ctx.globalAlpha = letter === "." ? 1 : letter === "d" ? 0.62 : 0.95;
        rounded(ctx, left + n * wide + 1, top + key * high + 2, wide - 2, high - 4, 3);
        ctx.fill();
        ctx.globalAlpha = 1;
      }
    }
    for (const [n, worker] of workers.entries()) if (worker.task) paintWorker(ctx, color, place(worker.task), worker.name, WORKERS[n % 4]);
    for (let n = bursts.length - 1; n >= 0; n -= 1) paintBurst(ctx, color, place, bursts, n, isCalm ? 1 : step / 0.5);
  }

  function paintWorker(ctx, color, [x, y], name, ink) {
    ctx.fillStyle = color(ink);
    ctx.strokeStyle = color("panel");
    ctx.lineWidth = 2;
    ctx.beginPath();
    ctx.arc(x, y, 9.5, 0, 7);
    ctx.fill();
    ctx.stroke();
    ctx.fillStyle = color("panel");
    ctx.textAlign = "center";
    ctx.fillText(name, x, y + 0.5);
    ctx.textAlign = "left";
  }

  // A task that was done opens like a ring, once.
  function paintBurst(ctx, color, place, all, n, by) {
    const burst = all[n];
    burst.age += by;
    if (burst.age >= 1) { all.splice(n, 1); return; }
    const [x, y] = place(burst.task);
    ctx.globalAlpha = 1 - burst.age;
    ctx.strokeStyle = color("ok");
    ctx.lineWidth = 2;
    ctx.beginPath();
    ctx.arc(x, y, 5 + 9 * burst.age, 0, 7);
    ctx.stroke();
    ctx.globalAlpha = 1;
  }

  const crew = h("p", { class: "note lab-crew" });
  return {
    node: h("section", { class: "stack", "aria-label": title }, h("h3", { class: "lab-h3" }, title), crew, grid.node, figures(...Object.values(tiles))),
    draw(frame) {
      const found = frame.figures;
      rows = found[`${kind}_rows`] ?? [];
      workers = found[`${kind}_workers`] ?? [];
      total = found.tasks ?? 0;
      for (const [name, tile] of Object.entries(tiles)) tile.show(found[`${kind}_${name}`], name === "done" ? `of ${number(total)}` : "");
      for (const each of frame.events) if (each.side === kind && each.word === "done") bursts.push({ ...each, age: 0 });
      if (bursts.length > 60) bursts.splice(0, bursts.length - 60);
      const states = workers.map((each) => `${each.name}: ${each.alive ? (each.task ? `task ${each.task[1]} of key ${each.task[0]}` : "waits") : "killed"}`);
      crew.textContent = workers.length ? `Workers ${states.join(" · ")}` : "";
      grid.describe(`${title}: ${found[`${kind}_done`] ?? 0} of ${total} tasks done, ${found[`${kind}_out_of_order`] ?? 0} out of order`);
    },
    close: () => grid.close(),
  };
}
