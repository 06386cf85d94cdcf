# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""SVG pictures: lines on two logarithmic axes, and bars on one."""

import html
import math
from dataclasses import dataclass

from goals import is_ours
from text import number_text, size_text

# Told apart by the colour-blind too; ours have the strong ones.
OURS = ["#0072b2", "#009e73", "#56b4e9", "#003f7d", "#00c2a8"]
PEERS = ["#d55e00", "#e69f00", "#cc79a7", "#8c564b", "#7f7f7f", "#bcbd22", "#444444"]
WIDTH, HEIGHT, MARGIN_LEFT, MARGIN_TOP, GAP = 330, 250, 70, 40, 40
ROW, LABEL = 20, 290


def colours(names):
    ours, peers = iter(OURS * 9), iter(PEERS * 9)
    return {name: next(ours if is_ours(_plain(name)) else peers) for name in names}


def _plain(name):
    return name.removeprefix("fresh: ")


def text(x, y, words, anchor="start", size=11, colour="#222", weight="normal"):
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" '
        f'font-weight="{weight}" fill="{colour}">{html.escape(words)}</text>'
    )


def _stroke(x1, y1, x2, y2, colour):
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}"/>'


def _power_text(power):
    for least, unit in ((9, "G"), (6, "M"), (3, "k")):
        if power >= least:
            return f"{10 ** (power - least)}{unit}"
    return f"{10**power:g}"


class Scale:
    """Powers of ten around the values, laid over [start, end]."""

    def __init__(self, values, start, end):
        self.low = math.floor(math.log10(min(values)))
        self.high = max(self.low + 1, math.ceil(math.log10(max(values))))
        self.start, self.end = start, end

    def at(self, value):
        share = (math.log10(value) - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    def powers(self):
        return range(self.low, self.high + 1)


@dataclass
class lines:  # pylint: disable=invalid-name
    """A line per name over sizes; `series` maps names to (size, value) pairs."""

    title: str
    across: str
    unit: str
    series: dict
    height: int = HEIGHT + MARGIN_TOP + 50
    width: int = WIDTH + MARGIN_LEFT

    def names(self):
        return list(self.series)

    def draw(self, x, y, colour_of):
        series = {
            name: [(size, value) for size, value in points if value is not None and value > 0]
            for name, points in self.series.items()
        }
        points = [point for each in series.values() for point in each]
        left, top, bottom = x + MARGIN_LEFT, y + MARGIN_TOP, y + MARGIN_TOP + HEIGHT
        yield text(x, y + 14, self.title, size=13, weight="bold")
        if not points:
            yield text(left, top + 20, "not measured")
            return
        sizes = sorted({size for size, _ in points})
        first, last = math.log2(sizes[0]), math.log2(sizes[-1])

        def across(size):
            share = (math.log2(size) - first) / (last - first) if last > first else 0.5
            return left + 10 + share * (WIDTH - 20)

        up = Scale([value for _, value in points], bottom, top)
        for power in up.powers():
            height = up.at(10**power)
            yield _stroke(left, height, left + WIDTH, height, "#ccc")
            yield text(left - 6, height + 4, _power_text(power), "end", 10)
        yield text(left - 6, top - 6, self.unit, "end", 10)
        for index, size in enumerate(sizes):
            yield _stroke(across(size), bottom, across(size), bottom + 4, "#888")
            lower = 14 if index % 2 and len(sizes) > 5 else 0
            yield text(across(size), bottom + 16 + lower, size_text(size), "middle", 10)
        yield text(left + WIDTH / 2, bottom + 44, self.across, "middle", 10)
        # Ours last, on top.
        for name in sorted(series, key=lambda name: is_ours(_plain(name))):
            colour, mine = colour_of[name], is_ours(_plain(name))
            path = " ".join(f"{across(size):.1f},{up.at(value):.1f}" for size, value in series[name])
            dashes = ' stroke-dasharray="6 3"' if name.startswith("fresh: ") and mine else ""
            yield (
                f'<polyline points="{path}" fill="none" stroke="{colour}" '
                f'stroke-width="{2.6 if mine else 1.6}"{dashes}/>'
            )
            for size, value in series[name]:
                yield (
                    f'<circle cx="{across(size):.1f}" cy="{up.at(value):.1f}" r="3.2" fill="{colour}"><title>'
                    f"{html.escape(name)}, {size_text(size)}: {number_text(value)} {self.unit}</title></circle>"
                )


@dataclass
class bars:  # pylint: disable=invalid-name
    """A bar per name, on a logarithmic axis, with its value at its end."""

    title: str
    unit: str
    values: list

    @property
    def height(self):
        return MARGIN_TOP + ROW * len(self.values) + 30

    @property
    def width(self):
        return LABEL + 200

    def names(self):
        return [name for name, _ in self.values]

    def draw(self, x, y, colour_of):
        yield text(x, y + 14, self.title + (f", {self.unit}" if self.unit else ""), size=13, weight="bold")
        known = [value for _, value in self.values if value]
        left, top = x + LABEL, y + MARGIN_TOP
        scale = Scale(known, left, left + 140) if known else None
        for index, (name, value) in enumerate(self.values):
            middle = top + ROW * index + ROW / 2
            weight = "bold" if is_ours(_plain(name)) else "normal"
            yield text(left - 6, middle + 4, name, "end", weight=weight)
            end = scale.at(value) if value else left
            if value:
                yield (
                    f'<rect x="{left}" y="{middle - 7}" width="{max(end - left, 2):.1f}" height="14" '
                    f'fill="{colour_of[name]}"/>'
                )
            yield text(end + 5, middle + 4, "not measured" if value is None else number_text(value), weight=weight)
        if scale:
            yield text(left, top + ROW * len(self.values) + 14, "logarithmic: each power of ten as long", size=9, colour="#666")


def _legend(names, colour_of, width):
    """Rows of colour and name; returns height and elements."""
    elements, x, y = [], 20, 62
    for name in names:
        needed = 40 + 7.2 * len(name)
        if x + needed > width:
            x, y = 20, y + 18
        elements.append(f'<rect x="{x}" y="{y - 9}" width="18" height="10" fill="{colour_of[name]}"/>')
        weight = "bold" if is_ours(_plain(name)) else "normal"
        elements.append(text(x + 24, y, name, weight=weight))
        x += needed
    return y + 18, elements


def draw(title, subtitle, charts):
    """All charts, a list of rows of them, as one SVG with one legend."""
    names = list(dict.fromkeys(name for row in charts for chart in row for name in chart.names()))
    # The same memory has the same colour however a chart calls it.
    plain = colours(list(dict.fromkeys(map(_plain, names))))
    colour_of = {name: plain[_plain(name)] for name in names}
    width = 20 + max(sum(chart.width + GAP for chart in row) for row in charts)
    y, body = _legend(names, colour_of, width)
    for row in charts:
        x = 20
        for chart in row:
            body += chart.draw(x, y, colour_of)
            x += chart.width + GAP
        y += max(chart.height for chart in row) + 16
    return "\n".join(
        [
            "<!-- SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause -->",
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{y}" font-family="sans-serif">',
            f'<rect width="{width}" height="{y}" fill="white"/>',
            text(20, 24, title, size=16, weight="bold"),
            text(20, 42, subtitle, colour="#555"),
            *body,
            "</svg>\n",
        ]
    )
