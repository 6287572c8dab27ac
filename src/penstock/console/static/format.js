// Numbers and times as people read them; times are in the reader's zone, with UTC on hover.
import { h, put } from "./dom.js";

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const tenth = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });
const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false });
const date = new Intl.DateTimeFormat(undefined, { year: "numeric", month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false });

export const number = (value) => (value === null || value === undefined ? "–" : whole.format(value));

export function short(value) {
  if (value === null || value === undefined) return "–";
  for (const [size, unit] of [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e4, "k"]]) {
    if (Math.abs(value) >= size) return tenth.format(value / (unit === "k" ? 1e3 : size)) + unit;
  }
  return whole.format(value);
}

export const rate = (value) => (value ? `${value < 10 ? tenth.format(value) : whole.format(value)}/s` : "0/s");

export function bytes(value) {
  if (value === null || value === undefined) return "–";
  for (const [size, unit] of [[2 ** 40, "TB"], [2 ** 30, "GB"], [2 ** 20, "MB"], [2 ** 10, "kB"]]) {
    if (value >= size) return `${tenth.format(value / size)} ${unit}`;
  }
  return `${whole.format(value)} B`;
}

export function seconds(value) {
  if (value === null || value === undefined) return "–";
  if (value === 0) return "0 s";
  if (value < 1) return `${whole.format(value * 1000)} ms`;
  if (value < 120) return `${value < 10 ? tenth.format(value) : whole.format(value)} s`;
  for (const [size, unit] of [[86400, "days"], [3600, "h"], [60, "min"]]) {
    if (value >= 2 * size) return `${value / size < 10 ? tenth.format(value / size) : whole.format(value / size)} ${unit}`;
  }
  return `${whole.format(value)} s`;
}

export const retention = (topic) => (topic.compacted ? (topic.retention ? `compacted, ${seconds(topic.retention)}` : "compacted") : topic.retention === null ? "for ever" : seconds(topic.retention));

export function time(value, whole = false) {
  const moment = new Date(typeof value === "number" ? value * 1000 : value);
  if (Number.isNaN(moment.getTime())) return h("span", {}, "–");
  const shown = whole || Math.abs(Date.now() - moment) > 43_200_000 ? date.format(moment) : clock.format(moment);
  return h("time", { datetime: moment.toISOString(), title: `${moment.toISOString().replace("T", " ").replace("Z", "")} UTC` }, shown);
}

export function ago(node, value, now = Date.now() / 1000) {
  return put(node, value ? `${seconds(Math.max(0, Math.round(now - value)))} ago` : "–");
}
