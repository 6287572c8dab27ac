"""Lines over time, drawn as SVG."""

import html
import math
from collections.abc import Iterator
from dataclasses import dataclass, field

_COLOURS = ("#2f6fb2", "#3c8d5a", "#d98a1f", "#8e44ad", "#c0392b")
_BACKGROUND = '<rect width="100%" height="100%" fill="#ffffff"/>'
_WIDTH, _HEIGHT, _LEFT, _TOP = 700, 200, 60, 40


@dataclass
class Plot:
    """Named series of points under one title."""

    title: str
    unit: str
    series: dict[str, list[tuple[float, float]]] = field(default_factory=dict)

    def add(self, name: str, x: float, y: float) -> None:
        self.series.setdefault(name, []).append((x, y))

    def last(self) -> str:
        """The newest value of each series, in words."""
        return ", ".join(f"{name} {points[-1][1]:.1f}" for name, points in self.series.items())

    @staticmethod
    def together(*plots: "Plot") -> str:
        """Return plots below each other, as one picture."""
        whole = _HEIGHT + _TOP + 40
        box = f"0 0 {_WIDTH + _LEFT + 220} {whole * len(plots)}"
        style = 'font-family="system-ui, sans-serif" font-size="13"'
        parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{box}" {style}>', _BACKGROUND]
        for number, plot in enumerate(plots):
            parts += [f'<g transform="translate(0 {whole * number})">', *plot._drawn(), "</g>"]
        return "\n".join([*parts, "</svg>\n"])

    def _drawn(self) -> list[str]:
        points = [point for each in self.series.values() for point in each]
        most = _rounded_up(max(x for x, _ in points)), _rounded_up(max(y for _, y in points))
        drawn = [_text(12, 22, self.title, 'font-weight="600"'), *self._grid(*most)]
        for number, (name, each) in enumerate(self.series.items()):
            colour = _COLOURS[number % len(_COLOURS)]
            places = " ".join(f"{_LEFT + _WIDTH * x / most[0]:.1f},{_y(y / most[1]):.1f}" for x, y in each)
            drawn.append(f'<polyline points="{places}" fill="none" stroke="{colour}" stroke-width="2"/>')
            drawn.append(_text(_LEFT + _WIDTH + 12, _TOP + 14 + 18 * number, name, f'fill="{colour}"'))
        return drawn

    def _grid(self, most_x: float, most_y: float) -> Iterator[str]:
        for part in (0, 0.25, 0.5, 0.75, 1):
            y, x = _y(part), _LEFT + _WIDTH * part
            yield f'<line x1="{_LEFT}" x2="{_LEFT + _WIDTH}" y1="{y}" y2="{y}" stroke="#ececec"/>'
            yield _text(_LEFT - 6, y + 4, f"{most_y * part:,.4g}", 'text-anchor="end" fill="#777"')
            yield _text(x, _y(0) + 18, f"{most_x * part:,.4g}", 'text-anchor="middle" fill="#777"')
        yield _text(_LEFT + _WIDTH, _y(0) + 34, self.unit, 'text-anchor="end" fill="#777"')


def _rounded_up(value: float) -> float:
    """The next value that makes a readable axis."""
    unit = 10 ** math.floor(math.log10(value)) if value > 0 else 1
    return next(unit * digit for digit in (1, 1.2, 1.6, 2, 2.4, 3, 4, 6, 8, 10) if unit * digit >= value)


def _y(share: float) -> float:
    return _TOP + _HEIGHT * (1 - share)


def _text(x: float, y: float, text: str, style: str) -> str:
    return f'<text x="{x}" y="{y}" {style}>{html.escape(text)}</text>'
