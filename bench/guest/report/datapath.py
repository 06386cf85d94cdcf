# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Buffers for messages, and messages: goals, tables, rows for JSON, charts."""

from goals import Goal, best, ratio
from picture import bars, lines
from text import number_text, size_text, table

KIB = 1 << 10
ALLOC = "hcamem_alloc, hcamem_lkey, hcamem_free"


def _is_fresh(name):
    return name.startswith("fresh: ")


def _is_cached(name):
    return name.startswith("UCX")


def goals(counted, timed):
    names = counted.names("buffer")

    def against_best(what, size, chosen, limit):
        rival = best(filter(chosen, names), lambda name: counted.value(name, "buffer", size))
        measured, in_time = (
            ratio(run.value(ALLOC, "buffer", size), run.value(rival, "buffer", size)) for run in (counted, timed)
        )
        return Goal(what, ALLOC, rival or "best", limit, measured, in_time)

    yield against_best("a buffer of 64 KiB per message, against a fresh one", 64 * KIB, _is_fresh, 0.02)
    for size in counted.sizes("buffer"):
        text = f"a buffer of {size_text(size)} per message, against a cached registration"
        yield against_best(text, size, _is_cached, 1)


def rows(counted, timed):
    for kind, whats in (("way", ("buffer", "message")), ("candidate", ("half a round trip", "message of a stream"))):
        for what in whats:
            for size in counted.sizes(what):
                for who in counted.names(what):
                    samples = counted.samples(who, what, size)
                    if samples is None:
                        continue
                    in_time = timed.samples(who, what, size)
                    yield {
                        kind: who,
                        "what": what,
                        "bytes": size,
                        "instructions": samples.median,
                        "instructions_spread": samples.spread,
                        "ns": in_time.median if in_time else None,
                        "ns_spread": in_time.spread if in_time else None,
                    }


def _by_size(title, run, what, factor=1):
    sizes = run.sizes(what)
    content = [[title, *map(size_text, sizes)]]
    for who in run.names(what):
        # Where writing is subtracted, noise may leave nothing.
        values = [run.value(who, what, size) for size in sizes]
        content.append([who, *(number_text(v / factor if v and v > 0 else None) for v in values)])
    return table(content)


def _bandwidth(timed):
    what = "message of a stream"
    sizes = timed.sizes(what)
    content = [["MB/s", *map(size_text, sizes)]]
    for who in timed.names(what):
        values = [timed.value(who, what, size) for size in sizes]
        content.append([who, *(number_text(size * 1000 / v if v else None) for size, v in zip(sizes, values))])
    return table(content)


def tables(counted, timed):
    yield "What a message's buffer costs, by size:\n"
    yield _by_size("instructions", counted, "buffer")
    yield _by_size("ns", timed, "buffer")
    yield "Buffer and message, from getting the one until the other has arrived:\n"
    yield _by_size("thousands of instructions", counted, "message", 1000)
    yield "Messages in memory that stays registered:\n"
    yield _by_size("half a round trip, µs", timed, "half a round trip", 1000)
    yield _bandwidth(timed)
    yield _by_size("half a round trip, thousands of instructions", counted, "half a round trip", 1000)


def charts(counted, timed):
    ways, candidates = counted.names("buffer"), timed.names("half a round trip")
    sizes, messages = counted.sizes("buffer"), timed.sizes("half a round trip")

    def bandwidth(who, size):
        each = timed.value(who, "message of a stream", size)
        return size * 1000 / each if each else None

    return [
        [
            lines(
                "A registered buffer for one message",
                "size of the buffer",
                "instructions",
                {who: [(size, counted.value(who, "buffer", size)) for size in sizes] for who in ways},
            ),
            lines(
                "Half a round trip by soft-RoCE",
                "size of the message",
                "instructions",
                {
                    who: [(size, counted.value(who, "half a round trip", size)) for size in messages]
                    for who in candidates
                },
            ),
            lines(
                "8 messages under way, soft-RoCE in an emulated guest",
                "size of the message",
                "MB/s",
                {who: [(size, bandwidth(who, size)) for size in messages] for who in candidates},
            ),
        ],
        [
            bars(
                "A registered buffer of 64 KiB for one message",
                "instructions",
                [(who, counted.value(who, "buffer", 64 * KIB)) for who in ways],
            ),
            bars(
                "The same with the message, until it has arrived",
                "instructions",
                [(who, counted.value(who, "message", 64 * KIB)) for who in ways],
            ),
        ],
    ]
