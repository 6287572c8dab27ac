// One log, three groups: where each of them is, what it reads now, and how late the fast one is.
import { h } from "/static/dom.js";
import { number, rate, short } from "/static/format.js";
import { figure, figures, mark } from "../figure.js";
import { eased, milliseconds, rounded, stage } from "../stage.js";

const READERS = [["fast", "topic"], ["medium", "flow"], ["slow", "capture"]];
const LOG = 46, ROW = 50, LEFT = 66, RIGHT = 14, TOP = 30;

export function picture() {
  const shown = { end: 0, wanted: 1, fast: 0, medium: 0, slow: 0 }, dots = [];
  let found = {};
  const strip = stage(TOP + LOG + 3 * ROW + 26, "The log and three positions in it", paintLog);
  const trend = stage(120, "Latency of the fast group by the second", paintTrend);
  const end = figure("end", "Events in the log", number);
  const tiles = READERS.map(([name, tone]) => figure(name, `${name[0].toUpperCase()}${name.slice(1)}: offset`, number, tone));
  const lags = READERS.map(([name]) => h("span", { "data-figure": `${name}_lag` }, "–"));
  const alone = [figure("p50_alone", "p50, nobody replays", milliseconds, "ok"), figure("p99_alone", "p99, nobody replays", milliseconds, "ok")];
  const replay = [figure("p50_replay", "p50 during replays", milliseconds, "capture"), figure("p99_replay", "p99 during replays", milliseconds, "capture")];
  const hidden = h("p", { class: "note" }, "Lag in events: ", READERS.map(([name], n) => [n ? ", " : "", `${name} `, lags[n]]));
  const node = h("div", { class: "stack" }, strip.node, figures(end, ...tiles), hidden, h("h3", { class: "lab-h3" }, "Latency of live events in the fast group"), trend.node, figures(...alone, ...replay));

  function paintLog({ ctx, width, color, step, isCalm }) {
    const most = Math.max(shown.wanted, shown.end, 1), x = (offset) => LEFT + (offset / most) * (width - LEFT - RIGHT);
    for (const name of Object.keys(shown)) shown[name] = eased(shown[name], found[name] ?? shown[name], step, isCalm);
    ctx.fillStyle = color("muted");
    ctx.textAlign = "left";
    ctx.fillText("log", 0, TOP + LOG / 2);
    ctx.fillStyle = color("sunk");
    rounded(ctx, x(0), TOP, x(most) - x(0), LOG, 7);
    ctx.fill();
    ctx.fillStyle = color("accent-soft");
    rounded(ctx, x(0), TOP, x(shown.end) - x(0), LOG, 7);
    ctx.fill();
    segments(ctx, color, x, most);
    READERS.forEach(([name, tone], n) => paintReader(ctx, color, x, name, tone, TOP + LOG + ROW * n + 30, most));
    paintDots(ctx, color, x, step, isCalm);
  }

  function segments(ctx, color, x, most) {
    const size = [1e5, 5e4, 2e4, 1e4, 5e3].find((each) => most / each >= 4) ?? 5e3;
    ctx.strokeStyle = color("panel");
    ctx.fillStyle = color("muted");
    ctx.textAlign = "center";
    ctx.lineWidth = 2;
    const every = x(size) - x(0) < 54 ? 2 * Math.ceil(54 / (x(size) - x(0)) / 2) : 1;
    for (let at = 0, n = 0; at <= most; at += size, n += 1) {
      if (at && at < shown.end) { ctx.beginPath(); ctx.moveTo(x(at), TOP); ctx.lineTo(x(at), TOP + LOG); ctx.stroke(); }
      if (n % every === 0) ctx.fillText(at ? short(at) : "0", x(at) + (at ? 0 : 4), TOP + LOG + 10);
    }
  }

  function paintReader(ctx, color, x, name, tone, y, most) {
    const at = x(shown[name]), ink = color(tone);
    ctx.textAlign = "left";
    ctx.fillStyle = ink;
    ctx.fillText(name, 0, y + 10);
    ctx.fillStyle = color("sunk");
    rounded(ctx, x(0), y + 4, x(most) - x(0), 12, 6);
    ctx.fill();
    ctx.globalAlpha = 0.16;
    ctx.fillStyle = ink;
    rounded(ctx, x(0), y + 4, x(shown.end) - x(0), 12, 6);
    ctx.fill();
    ctx.globalAlpha = 1;
    rounded(ctx, x(0), y + 4, at - x(0), 12, 6);
    ctx.fill();
    ctx.strokeStyle = ink;
    ctx.lineWidth = 1.5;
    ctx.setLineDash([2, 3]);
    ctx.beginPath();
    ctx.moveTo(at, TOP + LOG);
    ctx.lineTo(at, y + 4);
    ctx.stroke();
    ctx.setLineDash([]);
    ctx.beginPath();
    ctx.arc(at, y + 10, 8, 0, 7);
    ctx.fill();
    ctx.strokeStyle = color("panel");
    ctx.lineWidth = 2.5;
    ctx.stroke();
    const words = `lag ${short(Math.max(0, found[`${name}_lag`] ?? 0))}, ${rate(found[`${name}_rate`] ?? 0)}${name === "slow" && found.is_replaying ? ", replays" : ""}`;
    const wide = ctx.measureText(words).width, isRight = at + 18 + wide < x(most);
    ctx.fillStyle = color("ink");
    ctx.textAlign = isRight ? "left" : "right";
    ctx.fillText(words, isRight ? at + 14 : Math.max(at - 14, LEFT + wide), y + 26);
  }

  // A live event falls into the end of the log; an event that is read goes from the log to its reader.
  function paintDots(ctx, color, x, step, isCalm) {
    for (let n = dots.length - 1; n >= 0; n -= 1) {
      const dot = dots[n];
      dot.age += isCalm ? 1 : step / 0.45;
      if (dot.age >= 1) { dots.splice(n, 1); continue; }
      const row = READERS.findIndex(([name]) => name === dot.reader);
      const from = dot.reader ? TOP + LOG - 6 : 4, to = dot.reader ? TOP + LOG + ROW * row + 40 : TOP + LOG / 2;
      ctx.fillStyle = color(dot.reader ? READERS[row][1] : "accent");
      ctx.globalAlpha = dot.reader ? 0.9 - dot.age * 0.5 : 0.5 + dot.age * 0.5;
      ctx.beginPath();
      ctx.arc(x(dot.offset), from + (to - from) * dot.age, dot.reader ? 2.6 : 3.4, 0, 7);
      ctx.fill();
      ctx.globalAlpha = 1;
    }
  }

  function paintTrend({ ctx, width, height, color }) {
    const trend = (found.trend ?? []).filter((each) => each[1] !== null), left = 52, bottom = height - 18;
    const last = trend.at(-1)?.[0] ?? 60, most = Math.max(20, ...trend.map((each) => each[2])) * 1.1;
    const x = (at) => left + ((at - (last - 60)) / 60) * (width - left - RIGHT), y = (value) => bottom - (value / most) * (bottom - 8);
    ctx.textAlign = "right";
    ctx.lineWidth = 1;
    for (const value of [0, most / 2.2, most / 1.1]) {
      ctx.strokeStyle = color("line");
      ctx.beginPath();
      ctx.moveTo(left, y(value));
      ctx.lineTo(width - RIGHT, y(value));
      ctx.stroke();
      ctx.fillStyle = color("muted");
      ctx.fillText(milliseconds(Math.round(value)), left - 6, y(value));
    }
    ctx.fillStyle = color("warn-soft");
    for (const [at, , , isReplay] of trend) if (isReplay && x(at) >= left) ctx.fillRect(x(at) - 0.5, 6, (width - left - RIGHT) / 60 + 1, bottom - 6);
    for (const [place, ink] of [[2, "muted"], [1, "topic"]]) {
      ctx.strokeStyle = color(ink);
      ctx.lineWidth = place === 1 ? 2.2 : 1.4;
      ctx.beginPath();
      trend.filter((each) => x(each[0]) >= left).forEach((each, n) => (n ? ctx.lineTo(x(each[0]), y(each[place])) : ctx.moveTo(x(each[0]), y(each[place]))));
      ctx.stroke();
    }
    ctx.textAlign = "left";
    ctx.fillStyle = color("topic");
    ctx.fillText("p50", left, height - 6);
    ctx.fillStyle = color("muted");
    ctx.fillText("p99", left + 34, height - 6);
    ctx.fillStyle = color("warn");
    ctx.fillText("the slow group replays", left + 68, height - 6);
    if (!trend.length) { ctx.fillStyle = color("muted"); ctx.fillText("measured when the fast group is at the end of the log", left + 10, height / 2 - 10); }
  }

  return {
    node,
    draw(frame) {
      found = frame.figures;
      end.show(found.end, found.end < found.wanted ? `of ${number(found.wanted)}, being produced` : "");
      READERS.forEach(([name], n) => { tiles[n].show(found[name], `${rate(found[`${name}_rate`])}`); mark(lags[n], found[`${name}_lag`]).textContent = number(found[`${name}_lag`]); });
      for (const each of [...alone, ...replay]) each.show(found[each.querySelector("[data-figure]").dataset.figure]);
      for (const each of frame.events) dots.push({ ...each, age: 0 });
      if (dots.length > 240) dots.splice(0, dots.length - 240);
      strip.describe(`A log of ${number(found.end)} events. ${READERS.map(([name]) => `The ${name} group is at offset ${number(found[name])}`).join(", ")}.`);
    },
    close() { strip.close(); trend.close(); },
  };
}
