# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Sizes, numbers and Markdown tables; files that are replaced whole."""

import os


def size_text(size):
    for factor, unit in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= factor:
            return f"{size / factor:g} {unit}"
    return f"{size} B"


def number_text(value):
    """Three digits or so, with thousands apart: 12, 1,480, 74,700,000."""
    if value is None:
        return "-"
    if abs(value) < 1000:
        return f"{value:.3g}" if abs(value) < 100 else f"{value:.0f}"
    digits = len(str(int(abs(value)))) - 3
    return f"{round(value, -digits):,.0f}"


def table(rows):
    """Names to the left, numbers to the right."""
    rows = [[str(cell) for cell in row] for row in rows]
    widths = [max(3, *(len(row[column]) for row in rows)) for column in range(len(rows[0]))]

    def line(cells):
        padded = [
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(cells, widths))
        ]
        return "| " + " | ".join(padded) + " |"

    rule = ["-" * width if column == 0 else "-" * (width - 1) + ":" for column, width in enumerate(widths)]
    return "\n".join([line(rows[0]), line(rule), *map(line, rows[1:])]) + "\n"


def write_file(path, content):
    """All of the new or all of the old, whenever it is interrupted."""
    with open(path + ".tmp", "w", encoding="utf-8") as file:
        file.write(content)
    os.replace(path + ".tmp", path)
