"""Tests and estimates written from their definitions, with numpy alone: nothing of raybo, and nothing of scipy."""

from __future__ import annotations

import math

import numpy as np


def midranks(sizes):
    """Twice the rank of each, which is whole where some are equal."""
    return np.array([int((sizes < size).sum()) * 2 + int((sizes == size).sum()) + 1 for size in sizes])


def signed_rank(differences):
    """Return the exact p, by counting the ways to each sum of ranks, and the side."""
    d = differences[differences != 0.0]
    if not len(d):
        return 1.0, 0
    ranks = midranks(np.abs(d))
    up, down = int(ranks[d > 0].sum()), int(ranks[d < 0].sum())
    side = int(np.sign(up - down))
    ways = np.zeros(int(ranks.sum()) + 1)
    ways[0] = 1.0
    for rank in ranks:
        ways[rank:] = ways[rank:] + ways[:-rank]
    return min(1.0, 2.0 * float(ways[: min(up, down) + 1].sum()) / 2.0 ** len(d)), side


def binomial(won, lost):
    """The sign test's two-sided p."""
    n, least = won + lost, min(won, lost)
    return min(1.0, 2.0 * sum(math.comb(n, k) for k in range(least + 1)) / 2.0**n) if n else 1.0


def pairwise_means(d):
    """Hodges and Lehmann's estimate, and the ends of its 95 % interval."""
    means = np.sort(np.array([(d[i] + d[j]) / 2 for i in range(len(d)) for j in range(i, len(d))]))
    ways = np.zeros(len(d) * (len(d) + 1) // 2 + 1)
    ways[0] = 1.0
    for rank in range(1, len(d) + 1):
        ways[rank:] = ways[rank:] + ways[:-rank]
    below, out = 0.0, -1
    for number in ways / 2.0 ** len(d):
        below += float(number)
        if below > 0.025:
            break
        out += 1
    out = max(out, 0)
    return float(np.median(means)), float(means[out]), float(means[len(means) - 1 - out])


def shares(d):
    """The difference of two shares of pairs, with Agresti and Min's interval."""
    n, up, down = len(d), int((d > 0).sum()), int((d < 0).sum())
    at = (up - down) / (n + 2)
    half = 1.96 * math.sqrt((up + down + 1) / (n + 2) - at * at) / math.sqrt(n + 2)
    return (up - down) / n, max(-1.0, at - half), min(1.0, at + half)


def decidable(pairs):
    """True for each row whose pairs could have decided it, had they and all rows with more pairs said the same."""
    inside = 0
    result = dict.fromkeys(pairs, False)
    for n in sorted(result):
        alike = pairs.count(n)
        if (inside + alike) * 2.0 ** (1 - n) < 0.05:
            inside, result[n] = inside + alike, True
    return [result[n] for n in pairs]


def corrected(p):
    """Holm's."""
    order = sorted(range(len(p)), key=lambda i: p[i])
    found, most = [0.0] * len(p), 0.0
    for place, i in enumerate(order):
        most = max(most, min(1.0, (len(p) - place) * p[i]))
        found[i] = most
    return found
