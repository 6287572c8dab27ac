"""The share of late events against the delay: in the terminal, and as a picture."""

import html
from collections.abc import Iterator, Sequence
from datetime import timedelta

from penstock.ops.lateness.ladder import LADDER, spelled

_BAR = 40  # letters
_COLOUR, _MARK, _GREY = "#2f6fb2", "#d98a1f", "#777"
_WIDTH, _HEIGHT, _LEFT, _TOP = 700, 220, 70, 44
_STYLE = 'font-family="system-ui, sans-serif" font-size="12"'


def shown_steps(shares: Sequence[float]) -> int:
    """Return how many delays are worth showing: up to the first with which nothing is late.

    >>> shown_steps((0.5, 0.1, 0.0, 0.0))
    3
    """
    return next((place + 1 for place, share in enumerate(shares) if share == 0), len(shares))


def plotted(shares: Sequence[float], chosen: timedelta) -> Iterator[str]:
    """Yield a line of text for each delay, the chosen one marked."""
    most = max(shares[0], 1e-9)
    for delay, share in list(zip(LADDER, shares, strict=True))[: shown_steps(shares)]:
        bar = "█" * round(_BAR * share / most) or ("▏" if share else "")
        mark = "←" if delay == chosen else " "
        yield f"{spelled(delay):>12}  {100 * share:9.4f} % {mark} {bar}".rstrip()


def drawn(title: str, shares: Sequence[float], chosen: timedelta) -> str:
    """Return the same as SVG."""
    steps = shown_steps(shares)
    box = f"0 0 {_LEFT + _WIDTH + 30} {_TOP + _HEIGHT + 60}"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{box}" {_STYLE}>',
        '<rect width="100%" height="100%" fill="#ffffff"/>',
        _text(12, 22, title, 'font-weight="600"'),
        *_axis(max(shares[0], 1e-9)),
        *_bars(shares[:steps], chosen),
    ]
    return "\n".join([*parts, "</svg>\n"])


def _axis(most: float) -> Iterator[str]:
    for part in (0, 0.25, 0.5, 0.75, 1):
        y = _TOP + _HEIGHT * (1 - part)
        yield f'<line x1="{_LEFT}" x2="{_LEFT + _WIDTH}" y1="{y}" y2="{y}" stroke="#ececec"/>'
        yield _text(_LEFT - 6, y + 4, f"{100 * most * part:.3g} %", f'text-anchor="end" fill="{_GREY}"')


def _bars(shares: Sequence[float], chosen: timedelta) -> Iterator[str]:
    most, width = max(shares[0], 1e-9), _WIDTH / len(shares)
    for place, share in enumerate(shares):
        delay, x, height = LADDER[place], _LEFT + place * width, _HEIGHT * share / most
        colour = _MARK if delay == chosen else _COLOUR
        y = _TOP + _HEIGHT - max(height, 1)
        size = f'width="{0.8 * width:.1f}" height="{max(height, 1):.1f}"'
        yield f'<rect x="{x + 0.1 * width:.1f}" y="{y:.1f}" {size} fill="{colour}"/>'
        turned = f'transform="rotate(-35 {x + width / 2:.1f} {_TOP + _HEIGHT + 16})" text-anchor="end"'
        yield _text(x + width / 2, _TOP + _HEIGHT + 16, spelled(delay), f'{turned} fill="{_GREY}"')


def _text(x: float, y: float, text: str, style: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" {style}>{html.escape(text)}</text>'
