// Payments come to two tills: one asks a block list that a stream keeps, the other one that a batch keeps.
import { h } from "/static/dom.js";
import { number, seconds } from "/static/format.js";
import { figure, figures, mark } from "../figure.js";
import { eased, milliseconds, stage } from "../stage.js";

const LANES = ["stream", "batch"], HIGH = 136, LEFT = 12, MOST = 1000, TO_TILL = 1.5, BEHIND = 1.3, GATE = 0.58;

export function picture() {
  const dots = [], money = { stream: 0, batch: 0 };
  let found = {}, values = {}, sweep = 0, batches = 0, count = 0, last = 0;
  const tills = stage(2 * HIGH + 8, "Payments at two tills", paintTills);
  const curve = stage(210, "Loss against the interval of a batch", paintCurve);
  const pace = h("p", { class: "note" }, "");
  const clock = h("strong", { "data-figure": "speed" }, "–");
  const shown = [
    figure("stream_money", "Lost, judged in real time", number, "bad"), figure("batch_money", "Lost, judged by the batch", number, "bad"),
    figure("stream_passed", "Fraud passed, real time"), figure("batch_passed", "Fraud passed, batch"),
    figure("stream_refused", "Fraud refused, real time", number, "ok"), figure("batch_refused", "Fraud refused, batch", number, "ok"),
    figure("transactions", "Payments so far", number, "topic"), figure("stolen", "Stolen cards in use", number, "capture"),
    figure("reaction_ms", "From payment to block", milliseconds, "flow"), figure("batch_ms", "A batch took", milliseconds, "flow"),
  ];
  const wrong = [h("span", { "data-figure": "stream_honest" }, "–"), h("span", { "data-figure": "batch_honest" }, "–")];
  const node = h("div", { class: "stack" }, pace, tills.node, figures(...shown), h("p", { class: "note" }, "Honest payments refused: ", wrong[0], " in real time, ", wrong[1], " by the batch."), h("h3", { class: "lab-h3" }, "What this log would have cost by now, by the interval of the batch"), curve.node);

  function paintTills({ ctx, width, color, step, isCalm }) {
    const gate = Math.round(width * GATE);
    sweep = Math.max(0, sweep - step * 1.4);
    LANES.forEach((lane, n) => paintLane(ctx, width, color, lane, n * (HIGH + 8), gate, step, isCalm));
    for (let n = dots.length - 1; n >= 0; n -= 1) {
      const dot = dots[n];
      dot.age = (performance.now() - dot.born) / 1000;
      if (dot.age > TO_TILL + BEHIND) { dots.splice(n, 1); continue; }
      if (dot.age > 0) LANES.forEach((lane, k) => paintDot(ctx, width, color, dot, dot[lane], k * (HIGH + 8), gate));
    }
  }

  function paintLane(ctx, width, color, lane, top, gate, step, isCalm) {
    money[lane] = eased(money[lane], found[`${lane}_money`] ?? 0, step, isCalm);
    ctx.fillStyle = color("sunk");
    ctx.beginPath();
    ctx.roundRect(0, top, width, HIGH, 10);
    ctx.fill();
    if (lane === "batch" && sweep > 0) {
      ctx.globalAlpha = 0.35 * sweep;
      ctx.fillStyle = color("flow");
      ctx.fillRect((1 - sweep) * gate, top, 26, HIGH);
      ctx.globalAlpha = 1;
    }
    ctx.textAlign = "left";
    ctx.fillStyle = color("ink");
    ctx.font = "600 13px system-ui, sans-serif";
    const title = lane === "stream" ? "in real time" : `by a batch every ${values.every ?? "…"}`;
    ctx.fillText(width < 480 ? title : `judged ${title}`, LEFT, top + 15);
    ctx.font = "12px system-ui, sans-serif";
    ctx.strokeStyle = color(lane === "stream" ? "topic" : "capture");
    ctx.lineWidth = 3;
    ctx.beginPath();
    ctx.moveTo(gate, top + 28);
    ctx.lineTo(gate, top + HIGH - 12);
    ctx.stroke();
    ctx.textAlign = "center";
    ctx.fillStyle = color("muted");
    ctx.fillText("till", gate, top + 15);
    if (lane === "batch") paintClock(ctx, color, gate + 30, top + 15);
    ctx.textAlign = "right";
    ctx.fillStyle = color("bad");
    ctx.font = "650 20px system-ui, sans-serif";
    ctx.fillText(number(money[lane]), width - LEFT, top + HIGH - 30);
    ctx.font = "12px system-ui, sans-serif";
    ctx.fillStyle = color("muted");
    ctx.fillText("fraud that passed", width - LEFT, top + HIGH - 12);
  }

  // How far the time to the next batch has gone.
  function paintClock(ctx, color, x, y) {
    const every = found.every || 1, part = 1 - Math.min(1, (found.until_batch ?? every) / every);
    ctx.lineWidth = 3;
    ctx.strokeStyle = color("line");
    ctx.beginPath();
    ctx.arc(x, y, 8, 0, 7);
    ctx.stroke();
    ctx.strokeStyle = color("capture");
    ctx.beginPath();
    ctx.arc(x, y, 8, -Math.PI / 2, -Math.PI / 2 + part * 2 * Math.PI);
    ctx.stroke();
  }

  function paintDot(ctx, width, color, dot, isRefused, top, gate) {
    const y0 = top + 34 + dot.place * (HIGH - 66), size = dot.fraud ? 3.2 + Math.min(3.5, Math.sqrt(dot.amount) / 4) : 2.4;
    let x = LEFT + (Math.min(dot.age, TO_TILL) / TO_TILL) * (gate - LEFT - 4), y = y0, fade = 1;
    if (dot.age > TO_TILL) {
      const after = (dot.age - TO_TILL) / BEHIND;
      if (isRefused) { x = gate - 4 - after * 46; y = y0 + after * after * (top + HIGH - 6 - y0); fade = 1 - after; }
      else { x = gate + after * (width - gate - 90); fade = Math.min(1, 2.2 - 2.2 * after); }
    }
    ctx.globalAlpha = Math.max(0, fade) * (dot.fraud ? 1 : 0.55);
    ctx.beginPath();
    ctx.arc(x, y, size, 0, 7);
    if (isRefused && dot.age > TO_TILL) { ctx.strokeStyle = color("ok"); ctx.lineWidth = 2; ctx.stroke(); }
    else { ctx.fillStyle = color(dot.fraud ? "bad" : "muted"); ctx.fill(); }
    ctx.globalAlpha = 1;
  }

  function paintCurve({ ctx, width, height, color }) {
    const points = found.curve ?? [], left = 66, right = 22, bottom = height - 26, top = 18;
    const most = Math.max(1, ...points.map((each) => each.money), found.batch_money ?? 0) * 1.06;
    const x = (n) => left + (n / Math.max(1, points.length - 1)) * (width - left - right), y = (value) => bottom - (value / most) * (bottom - top);
    const thin = width < 480;
    ctx.lineWidth = 1;
    for (const part of [0, 0.5, 1]) {
      const value = (part * most) / 1.06;
      ctx.strokeStyle = color("line");
      ctx.beginPath();
      ctx.moveTo(left, y(value));
      ctx.lineTo(width - right, y(value));
      ctx.stroke();
      ctx.textAlign = "right";
      ctx.fillStyle = color("muted");
      ctx.fillText(number(value), left - 8, y(value));
    }
    if (!points.length) { ctx.textAlign = "left"; ctx.fillText("computed from the log as soon as a stolen card is found", left + 10, height / 2); return; }
    ctx.strokeStyle = color("capture");
    ctx.lineWidth = 2.4;
    ctx.lineJoin = "round";
    ctx.beginPath();
    points.forEach((each, n) => (n ? ctx.lineTo(x(n), y(each.money)) : ctx.moveTo(x(n), y(each.money))));
    ctx.stroke();
    points.forEach((each, n) => {
      ctx.fillStyle = color("capture");
      ctx.beginPath();
      ctx.arc(x(n), y(each.money), 3, 0, 7);
      ctx.fill();
      ctx.textAlign = n === 0 ? "left" : n === points.length - 1 ? "right" : "center";
      ctx.fillStyle = color("muted");
      if (!thin || n % 2 === 0 || n === points.length - 1) ctx.fillText(each.label, n === 0 ? x(n) - 14 : n === points.length - 1 ? x(n) + 14 : x(n), height - 10);
    });
    counted(ctx, color, x(0), y(found.stream_money), bottom, "topic", thin ? "counted" : "real time, counted", "left");
    const at = points.findIndex((each) => each.label === values.every);
    if (at > 0) counted(ctx, color, x(at), y(found.batch_money), bottom, "capture", thin ? "counted" : "batch, counted", at > points.length / 2 ? "right" : "left");
  }

  function counted(ctx, color, x, y, bottom, ink, words, align) {
    ctx.strokeStyle = color(ink);
    ctx.fillStyle = color("panel");
    ctx.lineWidth = 2.5;
    ctx.beginPath();
    ctx.arc(x, y, 7, 0, 7);
    ctx.fill();
    ctx.stroke();
    ctx.textAlign = align;
    ctx.fillStyle = color("ink");
    ctx.fillText(words, x + (align === "left" ? -4 : 4), align === "left" && y + 26 < bottom ? y + 18 : y - 16);
  }

  return {
    node,
    draw(frame) {
      found = frame.figures;
      values = frame.values;
      if (found.batches > batches) sweep = 1;
      batches = found.batches ?? 0;
      for (const each of shown) each.show(found[each.querySelector("[data-figure]").dataset.figure]);
      LANES.forEach((lane, n) => { mark(wrong[n], found[`${lane}_honest`]).textContent = number(found[`${lane}_honest`]); });
      const now = performance.now(), spread = Math.min(1000, Math.max(120, now - last));
      last = now;
      frame.events.forEach((each, n) => dots.push({ ...each, age: 0, born: now + (spread * n) / frame.events.length, place: ((count += 1) * 0.618) % 1 }));
      if (dots.length > MOST) dots.splice(0, dots.length - MOST);
      mark(clock, found.speed).textContent = `${found.speed ?? "–"} times`;
      if (found.speed > 1) pace.replaceChildren("Time is compressed: the traffic passes ", clock, ` as fast. ${seconds(Math.round(found.traffic_seconds))} of it have passed; ${found.batches} batches ran.`);
      else pace.replaceChildren("Time is not compressed (", clock, `). ${found.batches ?? 0} batches ran.`);
      tills.describe(`Two tills. In real time ${number(found.stream_passed)} fraudulent payments have passed, by the batch ${number(found.batch_passed)}.`);
      curve.describe(`Loss by interval: ${(found.curve ?? []).map((each) => `${each.label} ${number(each.money)}`).join(", ")}.`);
    },
    close() { tills.close(); curve.close(); },
  };
}
