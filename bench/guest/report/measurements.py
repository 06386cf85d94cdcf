# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""What a program in the guest wrote: one JSON object per line, see ../record.hpp."""

import json
from statistics import median, quantiles


class Unusable(Exception):
    """A file that is not what it should be; the text says why."""


class Samples:
    def __init__(self, values):
        self.values = values

    @property
    def median(self):
        return median(self.values)

    @property
    def spread(self):
        """Distance of the quartiles over the median; None where there are too few values."""
        if len(self.values) < 3 or not self.median:
            return None
        low, _, high = quantiles(self.values, n=4, method="inclusive")
        return (high - low) / abs(self.median)


class Measurements:
    """All samples of one run in one unit, found by who, what and size."""

    def __init__(self, lines, benchmark):
        rows = [json.loads(line) for line in lines if line.strip()]
        if not rows or rows[0].get("benchmark") != benchmark:
            raise Unusable(f"these are not measurements of bench_{benchmark}")
        self.kernel, self.unit, self.quick = (rows[0][key] for key in ("kernel", "unit", "quick"))
        self.skipped = [row for row in rows if "skipped" in row]
        self._samples = {}
        for row in rows[1:]:
            if "samples" in row:
                who = row.get("candidate", row.get("way", ""))
                self._samples[who, row["what"], row["bytes"]] = Samples(row["samples"])

    @classmethod
    def read(cls, path, benchmark):
        try:
            with open(path, encoding="utf-8") as file:
                return cls(file, benchmark)
        except json.JSONDecodeError as error:
            raise Unusable(f"{path}: {error}") from error
        except Unusable as error:
            raise Unusable(f"{path}: {error}") from error

    def samples(self, who, what, size):
        """None if it was not measured."""
        return self._samples.get((who, what, size))

    def value(self, who, what, size):
        found = self.samples(who, what, size)
        return None if found is None else found.median

    def names(self, what):
        return list(dict.fromkeys(who for who, of, _ in self._samples if of == what and who))

    def sizes(self, what):
        return sorted({size for who, of, size in self._samples if of == what and who})

    def spreads(self, what):
        found = [one.spread for (_, of, _), one in self._samples.items() if of == what]
        return [one for one in found if one is not None]
