// Views by the time they happened, the windows that count them, and the same views by the time they were read.
import { h } from "/static/dom.js";
import { number } from "/static/format.js";
import { figure, figures } from "../figure.js";
import { eased, rounded, stage } from "../stage.js";

const USERS = ["ann", "bob", "eve"], SPAN = 40, WIDEST = 120, LANE = 104, TOP = 26, LEFT = 36, RIGHT = 10;
const seconds = (value) => `${value.toFixed(1)} s`;

export function picture() {
  let found = {}, shown = 0, span = SPAN, ended = false;
  const dots = [], flashes = new Map();
  const lanes = stage(TOP + USERS.length * LANE + 22, "Views and windows by event time", paintLanes);
  const bars = stage(172, "Views a second, by processing time and by event time", paintBars);
  const tiles = {
    sent: figure("sent", "Views sent", number, "topic"),
    behind: figure("behind", "Behind the watermark", number, "bad"),
    truth: figure("truth", "Truth of closed windows", number, "ok"),
    counted: figure("counted", "Counted in them", number, "flow"),
    missing: figure("missing", "Missing", number, "bad"),
    corrected: figure("corrected", "Results corrected", number, "capture"),
    side: figure("side", "In the side output", number, "group"),
    watermark: figure("watermark", "Watermark", seconds),
  };
  const times = { most_processing: figure("most_processing", "Most in a second of processing time", number, "bad"), most_event: figure("most_event", "Most in a second of event time", number, "ok"), consumed: figure("consumed", "Read by the counting consumer", number) };
  const wait = h("p", { class: "lab-wait", hidden: true }, "Spark is starting; windows come when it has. The counting consumer below works already.");
  const legend = h("p", { class: "lab-legend" }, [["topic", "view in time"], ["bad", "view behind the watermark"], ["group", "in the side output"], ["flow", "window, with its count"], ["capture", "corrected"], ["bad", "count below the truth"]].map(([tone, text]) => h("span", {}, h("i", { class: `lab-swatch ${tone}` }), text)));
  const state = h("span", { class: "note" });

  function moment() {
    if (!ended && found.now !== undefined) shown = Math.max(shown, found.now + Math.min(1, (performance.now() - found.received) / 1000) - 0.3);
    return shown;
  }

  // A flow that is behind closes its windows later: so much more is shown.
  function paintLanes({ ctx, width, color, step, isCalm }) {
    const now = moment(), behind = now - (found.watermark ?? now);
    span = eased(span, Math.max(SPAN, Math.min(WIDEST, behind + 25)), step, isCalm, 2);
    const x = (at) => LEFT + ((at - (now - span)) / span) * (width - LEFT - RIGHT);
    ctx.save();
    USERS.forEach((user, n) => {
      const y = TOP + n * LANE;
      ctx.fillStyle = color("sunk");
      ctx.globalAlpha = 0.55;
      rounded(ctx, LEFT, y, width - LEFT - RIGHT, LANE - 10, 8);
      ctx.fill();
      ctx.globalAlpha = 1;
      ctx.fillStyle = color("muted");
      ctx.textAlign = "left";
      ctx.fillText(user, 0, y + LANE / 2 - 5);
    });
    axis(ctx, color, x, now, width);
    ctx.beginPath();
    ctx.rect(LEFT, 0, width - LEFT - RIGHT, TOP + USERS.length * LANE);
    ctx.clip();
    USERS.forEach((user, n) => (found.kind === "sliding" ? paintSliding : paintWindows)(ctx, color, x, user, TOP + n * LANE, step));
    paintDots(ctx, color, x, now, step, isCalm);
    ctx.restore();
    if (found.watermark !== null && found.watermark !== undefined) paintWatermark(ctx, color, x(found.watermark), width);
  }

  function axis(ctx, color, x, now, width) {
    ctx.fillStyle = color("muted");
    ctx.textAlign = "center";
    const every = span > 60 ? 15 : 5;
    for (let at = Math.ceil((now - span) / every) * every; at <= now; at += every) if (at >= 0 && x(at) > LEFT + 12 && x(at) < width - 24) ctx.fillText(`${at} s`, x(at), TOP + USERS.length * LANE + 6);
  }

  function paintWatermark(ctx, color, x, width) {
    if (x < LEFT || x > width - RIGHT) return;
    ctx.strokeStyle = ctx.fillStyle = color("warn");
    ctx.lineWidth = 2;
    ctx.setLineDash([5, 4]);
    ctx.beginPath();
    ctx.moveTo(x, 18);
    ctx.lineTo(x, TOP + USERS.length * LANE - 8);
    ctx.stroke();
    ctx.setLineDash([]);
    ctx.textAlign = x > width - 90 ? "right" : "center";
    ctx.fillText("watermark", x, 9);
  }

  // Windows that overlap are drawn below each other.
  function paintWindows(ctx, color, x, user, y, step) {
    const mine = (found.windows ?? []).filter((each) => each[0] === user).sort((one, other) => one[1] - other[1]);
    const ends = [], wanted = mine.map((each) => { let row = ends.findIndex((end) => end <= each[1] + 1e-3); if (row < 0) row = ends.length; ends[row] = each[2]; return row; });
    const rows = Math.max(1, Math.min(6, ends.length)), high = 48 / rows;
    mine.forEach(([, start, end, count, truth, kind], n) => {
      if (wanted[n] >= rows) return;
      const at = x(start) + 1.5, wide = x(end) - x(start) - 3, top = y + 40 + wanted[n] * high, id = `${user} ${start}`;
      const flash = flashes.get(id) ?? 0, tone = truth !== count ? "bad" : kind === "corrected" ? "capture" : "flow";
      ctx.fillStyle = color(tone);
      ctx.globalAlpha = 0.2 + 0.5 * flash;
      rounded(ctx, at, top, wide, high - 3, 5);
      ctx.fill();
      ctx.globalAlpha = 1;
      ctx.strokeStyle = color(tone);
      ctx.lineWidth = 1.4;
      ctx.stroke();
      if (flash) flashes.set(id, Math.max(0, flash - step / 1.2));
      ctx.fillStyle = color("ink");
      ctx.textAlign = "center";
      const text = truth === count ? number(count) : `${number(count)} of ${number(truth)}`;
      if (high > 13 && ctx.measureText(text).width < wide - 4) ctx.fillText(text, at + wide / 2, top + (high - 3) / 2 + 0.5);
      else if (high > 13 && ctx.measureText(number(count)).width < wide - 2) ctx.fillText(number(count), at + wide / 2, top + (high - 3) / 2 + 0.5);
    });
  }

  // A sliding window ends with each view: its count is a point at that view's time.
  function paintSliding(ctx, color, x, user, y) {
    const mine = (found.windows ?? []).filter((each) => each[0] === user).sort((one, other) => one[2] - other[2]);
    const most = Math.max(8, ...mine.map((each) => each[4])), place = (count) => y + 88 - (count / most) * 46;
    ctx.fillStyle = ctx.strokeStyle = color("flow");
    ctx.lineWidth = 1.5;
    ctx.beginPath();
    mine.forEach((each, n) => (n ? ctx.lineTo(x(each[2]), place(each[3])) : ctx.moveTo(x(each[2]), place(each[3]))));
    ctx.stroke();
    for (const [, , end, count, truth] of mine) {
      ctx.fillStyle = color(count === truth ? "flow" : "bad");
      ctx.beginPath();
      ctx.arc(x(end), place(count), 3, 0, 7);
      ctx.fill();
    }
  }

  function paintDots(ctx, color, x, now, step, isCalm) {
    for (let n = dots.length - 1; n >= 0; n -= 1) {
      const dot = dots[n], lane = USERS.indexOf(dot.user);
      if (dot.at < now - WIDEST) { dots.splice(n, 1); continue; }
      dot.age = isCalm ? 1 : Math.min(1, dot.age + step / 0.5);
      const y = TOP + lane * LANE + 10 + ((dot.n * 7) % 4) * 6, drop = (1 - dot.age) ** 2 * 16;
      ctx.fillStyle = color(dot.side ? "group" : dot.late ? "bad" : "topic");
      ctx.globalAlpha = 0.25 + 0.75 * dot.age;
      ctx.beginPath();
      ctx.arc(x(dot.at), y - drop, dot.late ? 4.2 : 3.2, 0, 7);
      ctx.fill();
      if (dot.late && dot.age < 1) { ctx.strokeStyle = color("bad"); ctx.lineWidth = 2; ctx.globalAlpha = 1 - dot.age; ctx.beginPath(); ctx.arc(x(dot.at), y, 5 + 12 * dot.age, 0, 7); ctx.stroke(); }
      ctx.globalAlpha = 1;
    }
  }

  function paintBars({ ctx, width, color }) {
    const all = found.by_second ?? [], last = all.at(-1)?.[0] ?? 60, wide = (width - LEFT - RIGHT) / 60;
    const most = Math.max(10, ...all.map((each) => Math.max(each[1], each[2])));
    [["by processing time: when the consumer read it", 1, "capture"], ["by event time: when it happened", 2, "ok"]].forEach(([label, place, tone], n) => {
      const base = 76 + n * 84;
      ctx.fillStyle = color("muted");
      ctx.textAlign = "left";
      ctx.fillText(label, LEFT, base - 66);
      ctx.textAlign = "right";
      ctx.fillText(number(most), LEFT - 6, base - 50);
      ctx.fillText("0", LEFT - 6, base - 4);
      ctx.fillStyle = color(tone);
      for (const each of all) {
        const high = (each[place] / most) * 54, at = LEFT + (each[0] - (last - 59)) * wide;
        if (at >= LEFT - 0.5) { ctx.globalAlpha = each[0] >= last - (place === 2 ? 2 : 0) ? 0.45 : 0.9; ctx.fillRect(at + 0.5, base - high, Math.max(1, wide - 1.5), high); ctx.globalAlpha = 1; }
      }
      ctx.strokeStyle = color("line");
      ctx.lineWidth = 1;
      ctx.beginPath();
      ctx.moveTo(LEFT, base + 0.5);
      ctx.lineTo(width - RIGHT, base + 0.5);
      ctx.stroke();
    });
  }

  return {
    node: h("div", { class: "stack" }, wait, lanes.node, legend, figures(...Object.values(tiles)), h("h3", { class: "lab-h3" }, "The counting consumer ", state), bars.node, figures(...Object.values(times))),
    draw(frame) {
      found = { ...frame.figures, received: performance.now(), kind: frame.values.kind };
      ended = frame.state !== "running";
      wait.hidden = found.process !== "starting" || ended;
      for (const [name, tile] of Object.entries({ ...tiles, ...times })) tile.show(found[name]);
      state.textContent = found.is_stopped ? "is stopped; its offset waits" : "";
      for (const each of frame.events) {
        if (each.kind === "view") dots.push({ ...each, age: 0 });
        else if (each.kind === "side") { const dot = dots.find((one) => one.n === each.n); if (dot) dot.side = true; }
        else if (each.what !== "on time") for (const one of found.windows ?? []) if (one[0] === each.user && Math.abs(one[2] - each.end) < 1e-3) flashes.set(`${one[0]} ${one[1]}`, 1);
      }
      if (dots.length > 4000) dots.splice(0, dots.length - 4000);
      lanes.describe(`${number(found.sent)} views of three users; closed windows counted ${number(found.counted)} of ${number(found.truth)}`);
      bars.describe(`At most ${number(found.most_processing)} views in a second of processing time, ${number(found.most_event)} in a second of event time`);
    },
    close() { lanes.close(); bars.close(); },
  };
}
