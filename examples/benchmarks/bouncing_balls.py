"""Bouncing balls: the next frame of a video, 18 x 18 pixels (Bay 2017, section 7.1, table 7.1).

Usage: ``python examples/benchmarks/bouncing_balls.py [n_seeds]`` (5 by default). For two and three
balls: 60 videos of 100 black and white frames to learn from, 20 to test; the seed draws the videos
and the weights. It prints the squared error of a frame, summed over its pixels, on both sets (mean
and standard deviation over the seeds; the first five frames of a video are not counted), and of
frames further ahead, where a network runs on from frame 50 on its own frames, black and white at a
half (`clip`). All trained networks have 200 units (the LSTM 100) and 20 epochs.

Settings were chosen on the seeds 100 to 102: the learning rates among .001, .003 and .01, the
weight of gradient control among .1 (the default), .01 and .001, four videos for an update from
random weights (with 32 there are too few updates). Ten minutes on one core.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np
from _command_line import run_main
from sklearn.linear_model import Ridge
from threadpoolctl import threadpool_limits

from reservoir import ESNRegressor, RNNRegressor
from reservoir.datasets import bouncing_balls

N_TRAIN, FIRST, START, AHEAD = 60, 5, 50, (1, 2, 5, 10)
RANDOM = {
    "init": "glorot",
    "output": "logistic",
    "max_iter": 20,
    "learning_rate_init": 0.003,
    "batch_size": 4,
}
STARTED = {
    "init": "esn",
    "output": "logistic",
    "max_iter": 20,
    "learning_rate_init": 0.003,
    "alpha": 1e-5,
}
NETWORKS = {
    "echo state network, 300 units, leak of 1": lambda s: ESNRegressor(
        300, leak_rate=1.0, alpha=1e-6, random_state=s
    ),
    "plain, random weights": lambda s: RNNRegressor(200, **RANDOM, random_state=s),
    "  with gradient control, weight .001": lambda s: RNNRegressor(
        200, **RANDOM, gradient_control=0.001, random_state=s
    ),
    "  with gradient control, weight .1": lambda s: RNNRegressor(
        200, **RANDOM, gradient_control=0.1, random_state=s
    ),
    "LSTM, random weights": lambda s: RNNRegressor(
        100, cell="lstm", **{**RANDOM, "learning_rate_init": 0.01}, random_state=s
    ),
    "reservoir start": lambda s: RNNRegressor(200, **STARTED, random_state=s),
}


def black_and_white(frame):
    """Return a frame of ones and zeros."""
    return (frame >= 0.5).astype(float)


def error(said, frames):
    """Return the mean squared error of a frame, summed over its pixels."""
    return float(((said - frames) ** 2).sum(axis=-1).mean())


def ridge_errors(videos, n_frames):
    """Return errors of ridge regression on some frames before, within 0 and 1."""
    last = videos.shape[1] - 1
    X = [videos[:, n_frames - 1 - k : last - k] for k in range(n_frames)]
    X, y = np.concatenate(X, axis=2), videos[:, n_frames:]
    model = Ridge(10.0).fit(np.concatenate(X[:N_TRAIN]), np.concatenate(y[:N_TRAIN]))
    said = np.clip([model.predict(rows) for rows in X], 0.0, 1.0)
    skipped = FIRST + 1 - n_frames
    said, y = said[:, skipped:], y[:, skipped:]
    return error(said[:N_TRAIN], y[:N_TRAIN]), error(said[N_TRAIN:], y[N_TRAIN:])


def free_errors(network, videos):
    """Return the errors of so many frames ahead, run freely from the middle of test videos."""
    runs = [
        network.forecast(
            max(AHEAD), context=video[:START], initial_state="zeros", clip=black_and_white
        )
        for video in videos[N_TRAIN:]
    ]
    truth = videos[N_TRAIN:, START : START + max(AHEAD)]
    return [error(np.array(runs)[:, k - 1], truth[:, k - 1]) for k in AHEAD]


def measure(n_balls, seed, rows, free):
    """Add the errors of all methods on the videos of one seed."""
    videos = black_and_white(bouncing_balls(80, size=18, n_balls=n_balls, random_state=seed))
    inputs, targets = videos[:, :-1], videos[:, 1:]
    parts = slice(None, N_TRAIN), slice(N_TRAIN, None)
    rows["the last frame again"].append(
        [error(inputs[part][:, FIRST:], targets[part][:, FIRST:]) for part in parts]
    )
    stays = videos[N_TRAIN:, START - 1]
    free["the last frame stays"].append(
        [error(stays, videos[N_TRAIN:, START - 1 + k]) for k in AHEAD]
    )
    for n_frames in (1, 2):
        rows[f"ridge, frames before: {n_frames}"].append(ridge_errors(videos, n_frames))
    for name, make in NETWORKS.items():
        network = make(seed).fit(list(inputs[:N_TRAIN]), list(targets[:N_TRAIN]))
        said = np.clip(network.predict(list(inputs)), 0.0, 1.0)[:, FIRST:]
        rows[name].append([error(said[part], targets[part][:, FIRST:]) for part in parts])
        if "start" in name or "plain" in name:
            free[name].append(free_errors(network, videos))


def main(n_seeds: int = 5) -> None:
    for n_balls, word in ((2, "two"), (3, "three")):
        rows, free = defaultdict(list), defaultdict(list)
        for seed in range(n_seeds):
            measure(n_balls, seed, rows, free)
        print(f"{word} balls, {n_seeds} seeds{'training':>35s}{'test':>18s}")
        for name, errors in rows.items():
            mean, spread = np.mean(errors, axis=0), np.std(errors, axis=0, ddof=min(1, n_seeds - 1))
            cells = (f"{m:11.2f} +- {s:.2f}" for m, s in zip(mean, spread, strict=True))
            print(f"  {name:44s}" + "".join(cells))
        print("  frames ahead, run freely:" + "".join(f"{k:>12d}" for k in AHEAD))
        for name, errors in free.items():
            print(f"  {name:26s}" + "".join(f"{e:12.1f}" for e in np.mean(errors, axis=0)))
        print(flush=True)


if __name__ == "__main__":
    with threadpool_limits(1):
        run_main(main)
