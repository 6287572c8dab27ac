// The small pictures of the overview.
import { svg } from "/static/dom.js";

const line = (d, tone = "", more = {}) => svg("path", { d, class: `pic-line ${tone}`, ...more });
const dot = (cx, cy, tone = "", r = 4) => svg("circle", { cx, cy, r, class: `pic-dot ${tone}` });
const box = (x, y, width, height, tone = "") => svg("rect", { x, y, width, height, rx: 4, class: `pic-box ${tone}` });
const range = (count, made) => Array.from({ length: count }, (_, n) => made(n));

const PICTURES = {
  batch: () => [line("M14 34H206"), ...range(12, (n) => dot(22 + n * 16, 34, n === 7 ? "bad" : "")), line("M14 74H206"), ...range(3, (n) => box(18 + n * 64, 62, 52, 24, n === 1 ? "bad" : "soft")), ...range(12, (n) => dot(27 + (n % 4) * 11 + Math.floor(n / 4) * 64, 74, n === 7 ? "bad" : "", 3))],
  consumers: () => [box(12, 40, 196, 18, "soft"), ...range(24, (n) => dot(20 + n * 8, 49, "dim", 2)), line("M180 34V22M110 34V22M40 34V22"), dot(180, 18, "", 5), dot(110, 18, "flow", 5), dot(40, 18, "warn", 5), line("M64 78C90 92 130 92 172 78", "warn"), line("M64 78l2 8M64 78l8 1", "warn")],
  queue: () => [...range(4, (n) => box(14 + n * 15, 18, 11, 26, n % 2 ? "soft" : "flow")), ...range(3, (n) => line(`M80 31L150 ${14 + n * 17}`, n === 1 ? "bad" : "")), ...range(3, (n) => dot(158, 14 + n * 17, n === 1 ? "bad" : "", 6)), box(14, 68, 128, 16, "soft"), ...range(14, (n) => dot(21 + n * 9, 76, "", 2.5)), line("M146 76H188M182 70l6 6-6 6")],
  partitions: () => [...range(6, (n) => [box(14, 10 + n * 14, 110, 9, "soft"), ...range(9 - (n * 5) % 4, (k) => dot(20 + k * 12, 14.5 + n * 14, ["", "flow", "target"][n % 3], 2.4)), line(`M126 ${14.5 + n * 14}L172 ${20 + Math.floor(n / 2) * 28}`, ["", "flow", "target"][Math.floor(n / 2)])]), ...range(3, (n) => dot(182, 20 + n * 28, ["", "flow", "target"][n], 7))],
  capture: () => [line("M20 26c0-12 44-12 44 0v46c0 12-44 12-44 0zM20 26c0 12 44 12 44 0M20 49c0 12 44 12 44 0", "warn"), line("M70 49H120"), dot(88, 49), dot(106, 49), ...range(3, (n) => [line(`M120 49L150 ${20 + n * 29}`), box(152, 10 + n * 29, 44, 20, ["", "flow", "target"][n])])],
  sourcing: () => [...range(6, (n) => box(14 + n * 24, 22, 20, 20, n % 3 === 2 ? "bad" : "target")), line("M16 82L38 74L62 68L86 80L110 66L134 58L158 72"), line("M158 32H196M190 26l6 6-6 6"), dot(158, 72, "", 4)],
  windows: () => [...range(3, (n) => box(16 + n * 64, 16, 58, 34, ["soft", "", "soft"][n])), ...range(11, (n) => dot(24 + n * 17, 28 + (n * 7) % 16, n === 4 ? "bad" : "", 3.2)), line("M116 8V92", "warn", { "stroke-dasharray": "4 4" }), ...range(3, (n) => box(16 + n * 64, 92 - [26, 36, 16][n], 58, [26, 36, 16][n], "flow"))],
  joins: () => [line("M14 30H120"), line("M14 72H120", "flow"), dot(36, 30), dot(72, 30), dot(100, 30), dot(52, 72, "flow"), dot(92, 72, "flow"), line("M72 34L92 68M100 34L92 68", "target"), line("M124 51H156M150 45l6 6-6 6"), dot(172, 44, "target", 6), dot(190, 58, "target", 6)],
  recovery: () => [line("M14 50H84"), line("M108 50H206", "target"), line("M88 38l16 24M104 38l-16 24", "bad"), ...range(5, (n) => dot(24 + n * 14, 50)), line("M96 74C80 92 52 92 52 62M52 62l-5 9M52 62l6 8", "warn"), ...range(6, (n) => dot(120 + n * 15, 50, "target")), box(46, 14, 12, 22, "flow")],
};

export function cardPicture(id) {
  const drawn = (PICTURES[id] ?? (() => [line("M20 50H200")]))();
  return svg("svg", { viewBox: "0 0 220 100", class: "lab-card-picture", "aria-hidden": "true" }, drawn.flat(2));
}
