"""The definite order search when some calls are known to come before others without any clock.

A result that stands in a conversation before a later call was proposed orders the two (an *edge*). Edges and intervals
combine: "before" is the transitive closure of both.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from grader.scorers.interval_order import FAR, Definite, Span


class Precedence:
    """Which calls certainly come after others: by time, beyond the tolerance, or by edges (index -> later indices)."""

    def __init__(self, spans: Sequence[Span], tolerance: int, later: Mapping[int, Sequence[int]]) -> None:
        self._spans = spans
        self._tolerance = tolerance
        self._later = later
        self._by_start = sorted(range(len(spans)), key=lambda index: spans[index].start)

    def after(self, sources: Iterable[int]) -> dict[int, int]:
        """Every call that is certainly after one of `sources`, with the source it comes after."""
        origin: dict[int, int] = {}
        earliest_end, earliest = FAR, -1
        cut = len(self._by_start)
        pending = [(index, index) for index in sources]
        while pending:
            index, source = pending.pop()
            if self._spans[index].end < earliest_end:
                earliest_end, earliest = self._spans[index].end, source
                while cut > 0 and self._spans[self._by_start[cut - 1]].start > earliest_end + self._tolerance:
                    cut -= 1
                    reached = self._by_start[cut]
                    if reached not in origin:
                        origin[reached] = earliest
                        pending.append((reached, earliest))
            for reached in self._later.get(index, ()):
                if reached not in origin:
                    origin[reached] = source
                    pending.append((reached, source))
        return origin

    def find_definite(self, steps: Sequence[Sequence[int]]) -> Definite:
        """As `interval_order.find_definite`, with edges. A chain that needs a call twice is none."""
        layers: list[dict[int, int]] = [dict.fromkeys(steps[0], -1)]
        for candidates in steps[1:]:
            origin = self.after(layers[-1])
            layers.append({index: origin[index] for index in candidates if index in origin})
        reached = next((number for number, layer in enumerate(layers) if len(layer) == 0), len(layers))
        if reached == 0:
            return Definite((), is_found=False)
        chain = [min(layers[reached - 1], key=lambda index: self._spans[index].end)]
        for layer in reversed(layers[1:reached]):
            chain.append(layer[chain[-1]])
        chain.reverse()
        return Definite(tuple(chain), is_found=reached == len(steps) and len(set(chain)) == len(chain))
