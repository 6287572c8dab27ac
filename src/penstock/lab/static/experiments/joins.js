// Two sides on a line of time each; what a join has found is drawn between them, where it belongs.
import { h, put } from "/static/dom.js";
import { bytes, number, seconds } from "/static/format.js";
import { spark } from "/static/spark.js";
import { figure, figures } from "../figure.js";
import { stage } from "../stage.js";

const NAMES = { near: ["clicks", "impressions"], latest: ["payments", "profiles of cards"], as_of: ["payments", "profiles of cards"], tables: ["orders", "products"] };
const HIGH = 264, UP = 64, DOWN = 200, LEFT = 8, RIGHT = 12, SPAN = 36, KEPT = 900;
const INKS = { matched: "ok", alone: "warn", wrong: "bad" };

export function picture() {
  const sides = { left: new Map(), right: new Map() }, results = [];
  let found = {}, values = {}, offset = null;
  const lines = stage(HIGH, "Two sides, and the results between them", paint);
  const wait = h("p", { class: "lab-wait", role: "status" }, "nothing runs yet");
  const truth = figures(figure("matched", "Matched, found", number, "ok"), figure("truth_matched", "Matched, in truth"), figure("unmatched", "Alone, found", number, "warn"), figure("truth_unmatched", "Alone, in truth"), figure("wrong", "Other than the truth", number, "bad"));
  const state = figures(figure("state_rows", "Rows in state", number, "flow"), figure("state_bytes", "State in memory", bytes, "flow"), figure("sent_left", "Left side", number, "topic"), figure("sent_right", "Right side", number, "capture"), figure("results", "Results", number, "target"));
  const shown = [...truth.children, ...state.children];
  const trend = spark([], "rows in state, batch by batch"), legend = h("p", { class: "note" }, "");
  trend.setAttribute("class", "chart");
  const note = h("p", { class: "note" }, "");
  const node = h("div", { class: "stack" }, wait, lines.node, legend, truth, note, h("h3", { class: "lab-h3" }, "What is buffered: rows in state, batch by batch"), trend, state);

  function paint({ ctx, width, color, step, isCalm }) {
    const now = clock(), from = now - SPAN, x = (t) => LEFT + ((t - from) / SPAN) * (width - LEFT - RIGHT);
    const [left, right] = NAMES[found.join] ?? ["left", "right"];
    line(ctx, width, color, UP, "topic", left, "sent_left");
    line(ctx, width, color, DOWN, "capture", right, "sent_right");
    ticks(ctx, width, color, x, now);
    if (found.join === "near") reach(ctx, color, x, now);
    paintResults(ctx, color, x, step, isCalm);
    paintSide(ctx, color, x, sides.left, UP, "topic", from);
    paintSide(ctx, color, x, sides.right, DOWN, "capture", from);
  }

  // The run's own time, gliding between two frames.
  function clock() {
    return offset === null ? 0 : performance.now() / 1000 - offset;
  }

  function line(ctx, width, color, y, ink, name, count) {
    ctx.strokeStyle = color(ink);
    ctx.globalAlpha = 0.5;
    ctx.lineWidth = 1.5;
    ctx.beginPath();
    ctx.moveTo(LEFT, y);
    ctx.lineTo(width - RIGHT, y);
    ctx.stroke();
    ctx.globalAlpha = 1;
    ctx.textAlign = "left";
    ctx.fillStyle = color(ink);
    ctx.font = "600 13px system-ui, sans-serif";
    ctx.fillText(name, LEFT, y === UP ? 16 : HIGH - 32);
    ctx.font = "12px system-ui, sans-serif";
    ctx.fillStyle = color("muted");
    ctx.textAlign = "right";
    ctx.fillText(`${number(found[count])} so far`, width - RIGHT, y === UP ? 16 : HIGH - 32);
  }

  function ticks(ctx, width, color, x, now) {
    ctx.fillStyle = color("muted");
    ctx.textAlign = "center";
    for (let back = 0; back < SPAN; back += 10) ctx.fillText(back ? `−${back} s` : "now", Math.min(x(now - back), width - 18), HIGH - 9);
  }

  // How far before now an impression may lie, to be joined with a click of now.
  function reach(ctx, color, x, now) {
    ctx.fillStyle = color("flow");
    ctx.globalAlpha = 0.12;
    ctx.beginPath();
    ctx.moveTo(x(now), UP);
    ctx.lineTo(x(now - (values.reach ?? 0)), DOWN);
    ctx.lineTo(x(now), DOWN);
    ctx.fill();
    ctx.globalAlpha = 1;
  }

  function paintSide(ctx, color, x, events, y, ink, from) {
    for (const [n, each] of events) {
      if (events.size > KEPT || (events === sides.left && each.t < from - SPAN)) { events.delete(n); continue; }  // a row may be old
      const place = x(each.t);
      if (place < LEFT) continue;
      ctx.fillStyle = color(ink);
      ctx.beginPath();
      if (each.gone) { ctx.strokeStyle = color(ink); ctx.lineWidth = 1.5; ctx.moveTo(place - 3, y - 3); ctx.lineTo(place + 3, y + 3); ctx.moveTo(place + 3, y - 3); ctx.lineTo(place - 3, y + 3); ctx.stroke(); continue; }
      ctx.arc(place, y, each.late ? 4 : 3.2, 0, 7);
      ctx.fill();
      if (each.alone) { ctx.strokeStyle = color("warn"); ctx.lineWidth = 2; ctx.beginPath(); ctx.arc(place, y, 6.5, 0, 7); ctx.stroke(); }
      if (each.late) { ctx.strokeStyle = color("ink"); ctx.lineWidth = 1.2; ctx.beginPath(); ctx.moveTo(place, y - 5); ctx.lineTo(place, y - 12); ctx.stroke(); }
    }
  }

  function paintResults(ctx, color, x, step, isCalm) {
    for (let n = results.length - 1; n >= 0; n -= 1) {
      const each = results[n], one = sides.left.get(each.left), other = sides.right.get(each.right);
      each.grown = isCalm ? 1 : Math.min(1, each.grown + step * 2.5);
      if (each.judged === "alone") { const side = one ?? other; if (side) side.alone = true; results.splice(n, 1); continue; }
      if (!one || !other) { if (each.age++ > 600) results.splice(n, 1); continue; }
      const from = Math.max(LEFT, x(other.t)), to = x(one.t);
      if (to < LEFT) { results.splice(n, 1); continue; }
      ctx.strokeStyle = color(INKS[each.judged]);
      ctx.globalAlpha = each.judged === "wrong" ? 0.95 : 0.55;
      ctx.lineWidth = each.judged === "wrong" ? 2.2 : 1.5;
      ctx.beginPath();
      ctx.moveTo(to, UP);
      ctx.lineTo(to + (from - to) * each.grown, UP + (DOWN - UP) * each.grown);
      ctx.stroke();
      ctx.globalAlpha = 1;
    }
  }

  function words() {
    const late = "A tick on a payment says that it came late.";
    if (found.join === "near") return "Green: a click with its impression. The shade is what a click of now can reach.";
    if (found.join === "tables") return "Green: a row of the view, from the change of the order to the change of the product that it shows. A cross is a deletion.";
    return `${late} Green: the row that was valid at the payment's time. Red: another one (${number(found.newer)} newer, ${number(found.older)} older). Rows of before the picture are at its left edge.`;
  }

  return {
    node,
    draw(frame) {
      found = frame.figures;
      values = frame.values;
      if (found.now !== undefined) {
        const is = performance.now() / 1000 - found.now;
        offset = offset === null || Math.abs(offset - is) > 0.5 ? is : offset + (is - offset) * 0.1;
      }
      for (const each of frame.events) {
        if (each.kind === "result") results.push({ ...each, grown: 0, age: 0 });
        else sides[each.kind].set(each.n, each);
      }
      if (results.length > KEPT) results.splice(0, results.length - KEPT);
      wait.hidden = found.process === "working";
      put(wait, found.process === "starting" ? `Spark is starting: ${seconds(Math.round(frame.elapsed))}. Both sides wait in the log meanwhile.` : "nothing runs yet");
      for (const each of shown) each.show(found[each.querySelector("[data-figure]").dataset.figure]);
      put(legend, found.join ? words() : "");
      put(note, found.batch === undefined ? "" : `Batch ${number(found.batch)} took ${seconds(found.batch_seconds)}. What is in the truth and not found waits: for its batch, or for the watermark.`);
      trend.draw(found.state_history ?? [], `Rows in state, batch by batch: ${number(found.state_rows)} now`);
      lines.describe(`A join of ${(NAMES[found.join] ?? ["two", "sides"]).join(" and ")}: ${number(found.matched)} matched and ${number(found.unmatched)} alone were found, ${number(found.wrong)} differ from the truth.`);
    },
    close() { lines.close(); },
  };
}
