"""Gaps in spectrograms of music, filled from few rows that stay known (Bay 2017, chapter 8).

Usage: ``python examples/benchmarks/spectrogram_gaps.py [n_sets] [n_pieces]`` (5 and 6 by default)
generates sets of pieces (`reservoir.datasets.song`, 40 s each, seeds from 0) and takes their
magnitude spectrograms: 129 frequencies (windows of 256 samples at 22,050 per second), 6,892 frames.
The middle quarter of the frames is a gap in which only the 0, 2, 4 or 16 lowest frequencies are
known. Two tables:

- the relative error, the Frobenius norm of the difference over that of the whole spectrogram;
- the signal-to-noise ratio of the whole sound in decibels, resynthesised with the true phases.

Mean over the pieces of a set, then mean and standard deviation over the sets. Networks are drawn
with the seed of the piece; their settings were chosen on the pieces with seeds 100 to 105.

With nothing known: the mean of the known frames; a straight line from the last frame to the next;
`fill_gaps` with an echo state network and with the LSTM of the source (129 units, 10 epochs).
With known rows: the five nearest frames by these rows; ridge regression on these rows, and on those
of 10 frames to either side, too; the iterated singular value decomposition of rank 10, from the
mean frame on; `fill_gaps` with the known rows as `exog`; and echo state networks that read all rows
off the known ones, forwards and backwards in time, as they come and with the settings below. Ten
minutes.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from _command_line import run_main
from scipy.signal import istft, stft
from sklearn.linear_model import RidgeCV
from sklearn.neighbors import KNeighborsRegressor
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from reservoir import ESNRegressor, RNNRegressor, fill_gaps
from reservoir.datasets import song

RATE, SECONDS, WINDOW = 22050, 40, 256
KNOWN = (0, 2, 4, 16)
PENALTIES = np.logspace(-3, 6, 10)
CHOSEN = {
    "n_units": 300,
    "leak_rate": np.geomspace(0.003, 1, 300),  # memories from 2 s to a frame, of 6 ms
    "alpha": PENALTIES,
    "alpha_selection": "blocked",
}
PLAIN = {"n_units": 100, "leak_rate": 1.0, "alpha": 1e-6}
LSTM = {"n_units": 129, "cell": "lstm", "init": "glorot", "max_iter": 10, "truncation": 45}

# A method takes the spectrogram, the gap, the number of known rows and a seed, and returns the
# frames of the gap. It sees the spectrogram whole: what it must not see is taken out by `hidden`.
Method = Callable[[np.ndarray, slice, int, int], np.ndarray]


def hidden(S: np.ndarray, gap: slice, k: int) -> np.ndarray:
    """Return the spectrogram with NaN for what is missing."""
    seen = S.copy()
    seen[gap, k:] = np.nan
    return seen


def outside(S: np.ndarray, gap: slice) -> np.ndarray:
    """Return the frames before and behind the gap."""
    return np.concatenate([S[: gap.start], S[gap.stop :]])


def mean_frame(S: np.ndarray, gap: slice, k: int, seed: int) -> np.ndarray:
    """Fill with the mean of the known frames."""
    return np.tile(outside(S, gap).mean(axis=0), (gap.stop - gap.start, 1))


def line(S: np.ndarray, gap: slice, k: int, seed: int) -> np.ndarray:
    """Fill with a straight line from the last known frame to the next."""
    n = gap.stop - gap.start
    return np.linspace(S[gap.start - 1], S[gap.stop], n + 2)[1:-1]


def loop(S: np.ndarray, gap: slice, k: int, model: object) -> np.ndarray:
    """Fill by networks that run on their own outputs from both sides, beside what is known."""
    known = S[:, :k] if k else None
    filled = fill_gaps(hidden(S, gap, k)[:, k:], model, exog=known, weights="distance")
    return np.hstack([S[gap, :k], filled[gap]])


def loop_esn(S: np.ndarray, gap: slice, k: int, seed: int) -> np.ndarray:
    """Fill by closed loops of echo state networks."""
    return loop(S, gap, k, ESNRegressor(**CHOSEN, random_state=seed))


def loop_lstm(S: np.ndarray, gap: slice, k: int, seed: int) -> np.ndarray:
    """Fill by closed loops of the network of the source."""
    return loop(S, gap, k, RNNRegressor(**LSTM, random_state=seed))


def nearest(S: np.ndarray, gap: slice, k: int, seed: int) -> np.ndarray:
    """Fill with the mean of the five frames whose known rows are nearest."""
    frames = outside(S, gap)
    return KNeighborsRegressor(5).fit(frames[:, :k], frames).predict(S[gap, :k])


def ridge(S: np.ndarray, gap: slice, k: int, seed: int, reach: int = 0) -> np.ndarray:
    """Fill by ridge regression on the known rows, and on those of `reach` frames on both sides."""
    padded = np.pad(S[:, :k], ((reach, reach), (0, 0)), mode="edge")
    X = np.hstack([padded[lag : lag + len(S)] for lag in range(2 * reach + 1)])
    scaler = StandardScaler().fit(X)
    model = RidgeCV(PENALTIES).fit(scaler.transform(outside(X, gap)), outside(S, gap))
    return model.predict(scaler.transform(X[gap]))


def ridge_around(S: np.ndarray, gap: slice, k: int, seed: int) -> np.ndarray:
    """Fill by ridge regression on the known rows of 21 frames."""
    return ridge(S, gap, k, seed, reach=10)


def low_rank(S: np.ndarray, gap: slice, k: int, seed: int, rank: int = 10) -> np.ndarray:
    """Fill by singular value decompositions of rank 10, each of what the one before filled."""
    filled = S.copy()
    filled[gap, k:] = mean_frame(S, gap, k, seed)[:, k:]
    for _ in range(30):
        axes = np.linalg.eigh(filled.T @ filled)[1][:, -rank:]
        filled[gap, k:] = (filled[gap] @ axes @ axes.T)[:, k:]
    return filled[gap]


def read_off(S: np.ndarray, gap: slice, k: int, model: ESNRegressor) -> np.ndarray:
    """Fill with what a network reads off the known rows, the mean of both directions of time."""
    X = StandardScaler().fit_transform(S[:, :k])
    before, behind, found = slice(gap.start), slice(gap.stop, None), np.zeros_like(S)
    for step in (1, -1):
        parts = [(X[part][::step], S[part][::step]) for part in (before, behind)]
        model.fit(*zip(*parts, strict=True))
        found += model.predict(X[::step], initial_state="zeros")[::step] / 2
    return found[gap]


def esn_plain(S: np.ndarray, gap: slice, k: int, seed: int) -> np.ndarray:
    """Read all rows off the known ones with the default network."""
    return read_off(S, gap, k, ESNRegressor(**PLAIN, random_state=seed))


def esn_chosen(S: np.ndarray, gap: slice, k: int, seed: int) -> np.ndarray:
    """Read all rows off the known ones with many leak rates, the penalty chosen by blocks."""
    return read_off(S, gap, k, ESNRegressor(**CHOSEN, random_state=seed))


METHODS: dict[str, tuple[Method, tuple[int, ...]]] = {
    "mean frame": (mean_frame, KNOWN),
    "straight line": (line, KNOWN),
    "singular values, rank 10": (low_rank, KNOWN),
    "5 nearest frames": (nearest, KNOWN[1:]),
    "ridge": (ridge, KNOWN[1:]),
    "ridge, 21 frames": (ridge_around, KNOWN[1:]),
    "closed loops, LSTM": (loop_lstm, KNOWN[:1]),
    "closed loops, ESN": (loop_esn, KNOWN),
    "ESN, leak of 1": (esn_plain, KNOWN[1:]),
    "ESN, settings chosen": (esn_chosen, KNOWN[1:]),
}


def measured(seed: int) -> np.ndarray:
    """Return errors and signal-to-noise ratios of a piece, (2, n_methods, n_known)."""
    x = song(RATE * SECONDS, rate=RATE, random_state=seed)[:, 0]
    Z = stft(x, nperseg=WINDOW)[2].T
    S, phases = np.abs(Z), np.exp(1j * np.angle(Z))
    n = len(S)
    gap = slice(3 * n // 8, 5 * n // 8)
    results = np.full((2, len(METHODS), len(KNOWN)), np.nan)
    for i, (method, where) in enumerate(METHODS.values()):
        for j, k in enumerate(KNOWN):
            if k not in where:
                continue
            filled = S.copy()
            filled[gap, k:] = np.maximum(method(S, gap, k, seed)[:, k:], 0.0)  # no magnitude < 0
            results[0, i, j] = np.linalg.norm(filled - S) / np.linalg.norm(S)
            around = slice(gap.start - 4, gap.stop + 4)  # the sounds differ nowhere else
            lost = istft(((filled - S) * phases)[around].T, nperseg=WINDOW)[1]
            results[1, i, j] = 20.0 * np.log10(np.linalg.norm(x) / np.linalg.norm(lost))
    return results


def main(n_sets: int = 5, n_pieces: int = 6) -> None:
    results = np.array(
        [[measured(n_pieces * s + p) for p in range(n_pieces)] for s in range(n_sets)]
    ).mean(axis=1)
    for which, (title, digits) in enumerate([("relative error", 3), ("signal to noise, dB", 1)]):
        print(f"{title:26s}" + "".join(f"{k:>9d} known" for k in KNOWN))
        for i, name in enumerate(METHODS):
            means, spreads = results[:, which, i].mean(axis=0), results[:, which, i].std(axis=0)
            cells = [
                "" if np.isnan(mean) else f"{mean:.{digits}f} ({spread:.{digits}f})"
                for mean, spread in zip(means, spreads, strict=True)
            ]
            print(f"{name:26s}" + "".join(f"{cell:>15s}" for cell in cells))


if __name__ == "__main__":
    with threadpool_limits(1):
        run_main(main)
