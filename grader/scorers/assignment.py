"""Largest assignments: which requirement gets which call, so that as many as possible are met with different calls.

Hopcroft and Karp's algorithm (SIAM J. Comput. 2(4), 1973) with a capacity on the left: a requirement that wants k calls
is one vertex, not k, so that the layers are counted in requirements.
"""

from __future__ import annotations

from collections.abc import Sequence

_FREE = -1


def most_assigned(wanted: Sequence[int], accepted: Sequence[Sequence[int]], items: int) -> list[int]:
    """How many of `wanted[i]` items each requirement i gets in a largest assignment in which no item is used twice.

    `accepted[i]` lists the items (0 to items - 1) that requirement i accepts.
    """
    owner = [_FREE] * items
    got = [0] * len(wanted)
    is_growing = True
    while is_growing:
        layers = _layers(wanted, got, accepted, owner)
        if layers is None:
            break
        is_growing = False
        cursors = [0] * len(wanted)
        for root in range(len(wanted)):
            while got[root] < wanted[root] and _augment(root, layers, cursors, accepted, owner):
                got[root] += 1
                is_growing = True
    return got


def _layers(
    wanted: Sequence[int], got: Sequence[int], accepted: Sequence[Sequence[int]], owner: Sequence[int]
) -> list[int] | None:
    """The distance of every requirement from one that wants more; None when no free item can be reached."""
    layers = [0 if got[i] < wanted[i] else _FREE for i in range(len(wanted))]
    queue = [i for i, layer in enumerate(layers) if layer == 0]
    reaches_free = False
    for left in queue:
        for item in accepted[left]:
            holder = owner[item]
            if holder == _FREE:
                reaches_free = True
            elif layers[holder] == _FREE:
                layers[holder] = layers[left] + 1
                queue.append(holder)
    return layers if reaches_free else None


def _augment(
    root: int, layers: Sequence[int], cursors: list[int], accepted: Sequence[Sequence[int]], owner: list[int]
) -> bool:
    """Give `root` one more item, passing items along a path of holders, each one layer further."""
    path: list[tuple[int, int]] = []
    left = root
    while True:
        step = _next_item(left, layers, cursors, accepted, owner)
        if step is None:
            if len(path) == 0:
                return False
            left, _ = path.pop()
            continue
        holder = owner[step]
        path.append((left, step))
        if holder == _FREE:
            for taker, item in path:
                owner[item] = taker
            return True
        left = holder


def _next_item(
    left: int, layers: Sequence[int], cursors: list[int], accepted: Sequence[Sequence[int]], owner: Sequence[int]
) -> int | None:
    """The next item that `left` may try in this phase: a free one, or one whose holder is one layer further."""
    items = accepted[left]
    while cursors[left] < len(items):
        item = items[cursors[left]]
        cursors[left] += 1
        holder = owner[item]
        if holder == _FREE or layers[holder] == layers[left] + 1:
            return item
    return None
