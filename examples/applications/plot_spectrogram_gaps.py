"""
Gaps in a spectrogram
=====================

A network fills in the lost frequencies of a song from the few that are known.

For ten seconds of a song all but the lowest few frequencies are lost. What was there? A
network reads the lost frequencies off the known ones; it has learned how on the rest of
the song, where nothing is missing (Bay 2017, chapter 8). Look at the last picture: two
known frequencies are enough to do better than guessing the mean, sixteen are enough for
nearly all; the network's lead over a ridge regression is there, and small.
"""

import matplotlib.pyplot as plt
import numpy as np
from numpy.linalg import norm
from scipy.signal import stft
from sklearn.linear_model import RidgeCV
from sklearn.neighbors import KNeighborsRegressor
from sklearn.preprocessing import StandardScaler

from reservoir import ESNRegressor
from reservoir.datasets import song

# %%
# A generated song of 40 seconds with verse and chorus in turn; its melody changes a
# little each time. The spectrogram has 129 frequencies and a frame each 6 ms.
rate = 22050
x = song(40 * rate, rate=rate, random_state=0)[:, 0]
frequencies, times, Z = stft(x, fs=rate, nperseg=256)
S = np.abs(Z).T  # (frames, frequencies)
before, gap, behind = np.split(np.arange(len(S)), [3 * len(S) // 8, 5 * len(S) // 8])
known = np.r_[before, behind]
print(f"{len(S)} frames, of which {len(gap)} are in the gap")

# %%
# One network goes forwards in time, one backwards, so that each frame is read from what
# came before it and from what came after; the mean of the two is filled in. Each learns
# from the two stretches around the gap, given as a list. Leak rates from 1 to .003 are
# memories from one frame to two seconds. The penalty is chosen on blocks of time that
# are left out, which a gap resembles most.
leak_rate = np.geomspace(0.003, 1, 300)
esn = ESNRegressor(leak_rate=leak_rate, alpha_selection="blocked", random_state=0)


def network(X):
    filled = 0
    for step in (1, -1):
        parts = before[::step], behind[::step]
        esn.fit([X[part] for part in parts], [S[part] for part in parts])
        filled = filled + esn.predict(X[::step], initial_state="zeros")[::step] / 2
    return filled[gap]


# %%
# Its rivals know no order of time: the mean of the known frames, the mean of the five
# whose known rows are nearest, and a ridge regression. The error is that of the whole
# spectrogram, as in the source.
nearest, ridge = KNeighborsRegressor(5), RidgeCV(np.logspace(-3, 6, 10))
rows, errors, wholes = [2, 4, 8, 16], {}, {"as it was": S}
for k in rows:
    X = StandardScaler().fit_transform(S[:, :k])
    fillings = {
        "mean frame": S[known].mean(axis=0),
        "5 nearest frames": nearest.fit(X[known], S[known]).predict(X[gap]),
        "ridge regression": ridge.fit(X[known], S[known]).predict(X[gap]),
        "echo state network": network(X),
    }
    for name, filled in fillings.items():
        whole = S.copy()
        whole[gap, k:] = np.maximum(filled, 0)[..., k:]  # no magnitude is negative
        errors.setdefault(name, []).append(norm(whole - S) / norm(S))
    wholes[f"{k} known"] = whole
print("known frequencies   ", *(f"{k:5d}" for k in rows))
for name, values in errors.items():
    print(f"{name:20s}", *(f"{value:5.3f}" for value in values))

# %%
# The song from two seconds before the gap to two after it, and what the network makes
# of it with 2 and with 16 frequencies known.
near = slice(gap[0] - 344, gap[-1] + 344)
extent = (times[near][0], times[near][-1], 0, frequencies[36] / 1000)
fig, axes = plt.subplots(3, sharex=True, figsize=(7, 7), layout="constrained")
for ax, title in zip(axes, ["as it was", "2 known", "16 known"], strict=True):
    decibels = 20 * np.log10(wholes[title][near, :36].T / S.max() + 1e-6)
    image = ax.imshow(decibels, vmin=-70, extent=extent, aspect="auto", origin="lower")
    ax.vlines(times[gap[[0, -1]]], *extent[2:], color="white", lw=1, ls="--")
    ax.set(title=title, ylabel="frequency, kHz")
axes[-1].set_xlabel("time, s")
fig.colorbar(image, ax=axes, label="magnitude, dB", shrink=0.6)

# %%
# With two known frequencies the beat returns and the melody does not: the mean of what
# is possible has no tune. With sixteen, up to 1.3 kHz, most of the power is known.
fig, ax = plt.subplots(figsize=(7, 3.4), layout="constrained")
ticks = [str(k) for k in rows]
for name, style in zip(errors, ["k:", "C0--", "k-.", "C1-"], strict=True):
    ax.plot(ticks, errors[name], style, marker="o", markersize=4, label=name)
ax.set(xlabel="known frequencies, of 129", ylabel="relative error", ylim=(0, None))
ax.legend(frameon=False)
plt.show()

# %%
# With nothing known, use the mean frame: networks that run on their own outputs, as in
# `fill_gaps`, were worse in the mean. :doc:`/results/applications` has five times six
# songs beside the source's tables, from ``examples/benchmarks/spectrogram_gaps.py``.
