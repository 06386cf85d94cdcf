# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Obtaining, registering and giving back memory: goals, tables, rows for JSON, charts."""

from goals import Goal, best, is_ours, ratio
from picture import bars, lines
from text import number_text, size_text, table

MIB, GIB = 1 << 20, 1 << 30
STEPS = ("obtain", "register", "deregister", "release", "fork")
COUNTS = ("page faults", "page-table bytes", "pinned pages", "dma segments", "cleared pages")
HUGE, POOL = "hcamem, huge + dma-buf", "hcamem pool"
MALLOC, HUGETLB = "malloc, 4 KiB pages + ibv_reg_mr", "hugetlbfs 2 MiB + ibv_reg_mr"


class Costs:
    """Of one unit, with what zeroing the memory took apart. `counts`: the run that counted what
    the kernel does, which is that of the instructions."""

    def __init__(self, run, counts):
        self.run, self.counts = run, counts
        self.clear_page = run.value("", "clear a page", 4096)

    def zeroing(self, who, size):
        cleared = self.counts.value(who, "cleared pages", size)
        return None if cleared is None or self.clear_page is None else cleared * self.clear_page

    def obtain(self, who, size):
        whole, zeroing = self.run.value(who, "obtain", size), self.zeroing(who, size)
        return None if whole is None or zeroing is None else max(whole - zeroing, 0)

    def step(self, who, what, size):
        return self.obtain(who, size) if what == "obtain" else self.run.value(who, what, size)

    def sum(self, who, size, *steps):
        values = [self.step(who, what, size) for what in steps]
        return None if None in values else sum(values)


def goals(counted, timed):
    """`counted` in instructions, by which goals are judged; `timed` in ns."""
    run = counted.run
    peers = [name for name in run.names("obtain") if not is_ours(name)]

    def against_best(what, ours, size, *steps):
        rival = best(peers, lambda name: counted.sum(name, size, *steps))
        return against(what, ours, rival, size, 0.5, *steps)

    def against(what, ours, rival, size, limit, *steps):
        measured, in_time = (
            ratio(costs.sum(ours, size, *steps), costs.sum(rival, size, *steps)) for costs in (counted, timed)
        )
        return Goal(what, ours, rival or "best", limit, measured, in_time)

    def count(what, limit):
        rival = run.value(HUGETLB, what, 64 * MIB)
        value = run.value(HUGE, what, 64 * MIB)
        if limit is None:
            return Goal(f"{what} for 64 MiB", HUGE, HUGETLB, rival or 0, value, unit="")
        return Goal(f"{what} for 64 MiB", HUGE, "", limit, value, unit="")

    return [
        against_best("obtain + register 64 MiB, zeroing apart", HUGE, 64 * MIB, "obtain", "register"),
        against_best("obtain + register 1 GiB, zeroing apart", HUGE, GIB, "obtain", "register"),
        against("register 64 MiB", HUGE, HUGETLB, 64 * MIB, 0.5, "register"),
        against_best("deregister + release 64 MiB", HUGE, 64 * MIB, "deregister", "release"),
        against_best("deregister + release 64 MiB", POOL, 64 * MIB, "deregister", "release"),
        against("fork holding 1 GiB registered", HUGE, MALLOC, GIB, 0.2, "fork"),
        count("page faults", None),
        count("page-table bytes", None),
        count("dma segments", 32),
    ]


def rows(counted, timed):
    for size in counted.run.sizes("obtain"):
        for who in counted.run.names("obtain"):
            if counted.run.value(who, "obtain", size) is None:
                continue
            row = {"candidate": who, "bytes": size}
            for what in COUNTS:
                row[what.replace(" ", "_").replace("-", "_")] = counted.run.value(who, what, size)
            for costs, unit in ((counted, "instructions"), (timed, "ns")):
                row[unit] = {what: costs.step(who, what, size) for what in STEPS}
                row[unit]["zeroing"] = costs.zeroing(who, size)
                row[unit]["spread"] = {
                    what: samples.spread
                    for what in STEPS
                    if (samples := costs.run.samples(who, what, size)) is not None
                }
            row["instructions"]["hca_table"] = counted.run.value(who, "soft-RoCE's table", size)
            yield row


def _cost_table(costs, size, factor, columns):
    head = [size_text(size), "obtain", "zeroing", "register", "deregister", "release", "fork"]
    content = [head[: 4] + (["of it soft-RoCE's table"] if columns else []) + head[4:]]
    for who in costs.run.names("obtain"):
        if costs.run.value(who, "obtain", size) is None:
            continue
        values = [costs.obtain(who, size), costs.zeroing(who, size), costs.step(who, "register", size)]
        if columns:
            values.append(costs.run.value(who, "soft-RoCE's table", size))
        values += [costs.step(who, what, size) for what in ("deregister", "release", "fork")]
        content.append([who, *(number_text(None if v is None else v / factor) for v in values)])
    return table(content)


def tables(counted, timed):
    run = counted.run
    yield "Thousands of instructions, user space and kernel, median:\n"
    for size in run.sizes("obtain"):
        yield _cost_table(counted, size, 1000, True)
    # The other sizes are in the JSON.
    shown = [size for size in run.sizes("obtain") if size == 64 * MIB] or run.sizes("obtain")[-1:]
    yield "Microseconds in an emulated guest, median:\n"
    for size in shown:
        yield _cost_table(timed, size, 1000, False)
    yield "What the kernel does for it:\n"
    for size in shown:
        content = [[size_text(size), "page faults", "page-table KiB", "pages pinned", "dma segments", "pages zeroed"]]
        for who in run.names("obtain"):
            values = [run.value(who, what, size) for what in COUNTS]
            if None not in values:
                values[1] /= 1024
                content.append([who, *map(number_text, values)])
        yield table(content)
    bare = run.value("", "fork without a buffer", 0)
    yield (
        f"A fork without any of this takes {number_text(bare / 1000)} thousand instructions. "
        f"Zeroing a page of 4 KiB: {number_text(counted.clear_page)} instructions, "
        f"{number_text(timed.clear_page)} ns here.\n"
    )


def charts(counted):
    run = counted.run
    sizes, names = run.sizes("obtain"), run.names("obtain")

    def series(*steps):
        return {
            name: [(size, counted.sum(name, size, *steps)) for size in sizes] for name in names
        }

    def at(size, *steps):
        return [(name, counted.sum(name, size, *steps)) for name in names]

    largest = sizes[-1]
    return [
        [
            lines("Obtain and register, without the zeroing", "size of the buffer", "instructions", series("obtain", "register")),
            lines("Deregister and release", "size of the buffer", "instructions", series("deregister", "release")),
            lines("fork() while it is registered", "size of the buffer", "instructions", series("fork")),
        ],
        [
            bars(f"Register {size_text(64 * MIB)}", "instructions", at(64 * MIB, "register")),
            bars(
                f"DMA segments of {size_text(64 * MIB)}",
                "",
                [(name, run.value(name, "dma segments", 64 * MIB)) for name in names if name != POOL],
            ),
            bars(f"fork() holding {size_text(largest)} registered", "instructions", at(largest, "fork")),
        ],
    ]
