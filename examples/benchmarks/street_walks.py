"""Where does somebody walk next? Walks through a town of 531 crossings (Bay 2017, section 6.2).

Usage: ``python examples/benchmarks/street_walks.py [n_seeds]`` (5 by default) learns from 2000
walks by sixty habits with a detour in a tenth of them, and from 2000 walks whose ends are drawn
anew. It prints the share of the remaining crossings of 200 new walks that are right, each at its
step, where 1 to 6 crossings are known: mean over the seeds, and the standard deviation over all
known crossings. Methods: any street to a new crossing; counts of what followed the last one,
three, or all crossings of the walk (or fewer where these never came); networks of 128 units, free
and held to the streets. Walks with crossings that were never learned from are left out. Settings
were chosen on seed 100. A quarter of an hour on one core.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from functools import partial

import numpy as np
from _command_line import run_main
from threadpoolctl import threadpool_limits

from reservoir import RNNClassifier
from reservoir.datasets import street_walks

N_TRAIN, N_TEST, KNOWN = 2000, 200, (1, 2, 3, 4, 5, 6)


class Counts:
    """What followed the last crossings, as many as were seen before, most often."""

    def __init__(self, order, walks):
        self.order = order
        self.followed = defaultdict(Counter)
        for walk in walks:
            for t in range(1, len(walk)):
                for n in range(1, min(order, t) + 1):
                    self.followed[tuple(walk[t - n : t])][walk[t]] += 1

    def __call__(self, walk, known):
        """Return a walk as it goes on behind the crossings that are known."""
        said = list(walk[: known + 1])
        while len(said) < len(walk):
            keys = (tuple(said[-n:]) for n in range(self.order, 0, -1))
            found = next(key for key in keys if key in self.followed)
            said.append(self.followed[found].most_common(1)[0][0])
        return np.array(said)


def strolled(walk, known, joined, rng):
    """Return a walk that goes on to any crossing where it has not been, if there is one."""
    said = list(walk[: known + 1])
    while len(said) < len(walk):
        streets = np.flatnonzero(joined[said[-1], :-1])
        new = np.setdiff1d(streets, said)
        said.append(int(rng.choice(new if len(new) else streets)))
    return np.array(said)


class Walker:
    """A network, which may be held to the streets."""

    def __init__(self, network, allowed=None):
        self.network, self.allowed = network, allowed

    def __call__(self, walk, known):
        """Return a walk as it goes on behind the crossings that are known."""
        drawn = self.network.sample(
            len(walk) - known - 1,
            context=walk[: known + 1],
            temperature=0,
            allowed=self.allowed,
            initial_state="zeros",
        )
        return np.r_[walk[: known + 1], drawn]


def shares(say, walks):
    """Return the share of the rest that is right, by how many crossings are known."""
    found = []
    for known in KNOWN:
        rest = slice(known + 1, -1)
        found.append(np.mean(np.concatenate([say(w, known)[rest] == w[rest] for w in walks])))
    return found


def trained(walks, n_symbols, seed, **parameters):
    """Return a network that has learned from walks."""
    network = RNNClassifier(
        128,
        init="orthogonal",
        n_symbols=n_symbols,
        learning_rate_init=0.003,
        max_iter=30,
        dtype="float32",
        random_state=seed,
        **parameters,
    )
    return network.fit([walk[:-1, None] for walk in walks], [walk[1:] for walk in walks])


def methods(n_routes, seed):
    """Yield names, and how much of new walks is right."""
    walks, streets, places = street_walks(N_TRAIN + N_TEST, n_routes=n_routes, random_state=seed)
    end = len(places)
    walks = [np.r_[end, walk, end] for walk in walks]
    symbols = np.unique(np.concatenate(walks[:N_TRAIN]))
    known = [np.isin(walk, symbols).all() and len(walk) > KNOWN[-1] + 2 for walk in walks]
    coded = [np.searchsorted(symbols, walk) for walk in walks]
    train = coded[:N_TRAIN]
    test = [w for w, good in zip(coded[N_TRAIN:], known[N_TRAIN:], strict=True) if good]
    longest = max(map(len, walks))
    for order, name in ((1, "last"), (3, "last three"), (longest, "all")):
        yield f"counts, {name}", shares(Counts(order, train), test)
    joined = np.ones((len(symbols), len(symbols)), dtype=bool)
    joined[:-1, :-1] = streets[symbols[:-1]][:, symbols[:-1]].toarray() > 0
    rng = np.random.default_rng(seed)
    yield "any street to a new crossing", shares(partial(strolled, joined=joined, rng=rng), test)
    for cell in ("rnn", "gru"):
        network = trained(train, len(symbols), seed, cell=cell)
        yield cell, shares(Walker(network), test)
        yield f"{cell}, held to the streets", shares(Walker(network, joined), test)


def main(n_seeds: int = 5) -> None:
    for n_routes, title in ((60, "sixty habits"), (None, "no habits")):
        rows = defaultdict(list)
        for seed in range(n_seeds):
            for name, found in methods(n_routes, seed):
                rows[name].append(found)
        print(f"{title + ', crossings known':34s}" + "".join(f"{k:>8d}" for k in KNOWN))
        for name, found in rows.items():
            spread = np.mean(found, axis=1).std(ddof=min(1, n_seeds - 1))
            means = "".join(f"{share:8.3f}" for share in np.mean(found, axis=0))
            print(f"{name:34s}{means}   +- {spread:.3f}")
        print(flush=True)


if __name__ == "__main__":
    with threadpool_limits(1):
        run_main(main)
