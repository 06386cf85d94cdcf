# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Goals: what is ours, over what it is compared with, and the limit of that ratio."""

from dataclasses import dataclass
from typing import Optional


@dataclass
class Goal:
    what: str
    ours: str
    against: str
    limit: float
    measured: Optional[float]  # None: not measured in this run
    in_time: Optional[float] = None  # the same ratio of times
    unit: str = "x"

    @property
    def outcome(self):
        if self.measured is None:
            return "not measured"
        return "met" if self.measured <= self.limit else "MISSED"


def ratio(ours, theirs):
    if ours is None or theirs is None or theirs <= 0:
        return None
    return ours / theirs


def is_ours(name):
    return name.startswith("hcamem")


def best(names, cost):
    """The name with the least cost among those that have one; None if none has."""
    known = [(cost(name), name) for name in names if cost(name) is not None]
    return min(known)[1] if known else None


def goal_rows(goals):
    yield ["goal", "ours", "against", "limit", "measured", "in time", ""]
    for one in goals:
        def number(value):
            return "-" if value is None else f"{value:.3g}"

        yield [
            one.what,
            one.ours,
            one.against,
            f"<= {one.limit:g} {one.unit}".strip(),
            number(one.measured),
            number(one.in_time),
            one.outcome,
        ]
