"""
Bouncing balls: the next frame of a video
=========================================

A network predicts the next frame of a video from its pixels, trained from a least-squares start.

Two balls bounce off the walls and off each other, and a network sees nothing but the pixels (Bay
2017, section 7.1). A frame does not say where the balls are going, so one must remember; and
where they touch, no sum of the frames before says how they go on. The networks start from a
reservoir whose readout was fitted by least squares, and are then trained for twenty epochs.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import Ridge

from reservoir import RNNRegressor
from reservoir.datasets import bouncing_balls


def black_and_white(frame):
    return (frame >= 0.5).astype(float)


videos = black_and_white(bouncing_balls(80, size=18, n_balls=2, random_state=0))
train, test = videos[:60], videos[60:]  # 100 frames of 18 x 18 pixels each
network = RNNRegressor(
    200,
    init="esn",
    output="logistic",  # a pixel is between 0 and 1
    max_iter=20,
    learning_rate_init=0.003,
    alpha=1e-5,
    random_state=0,
)
network.fit(list(train[:, :-1]), list(train[:, 1:]))


# %%
# The simplest rival is a linear regression on the last two frames, cut to 0 and 1. The error of a
# frame is the sum of its squared errors over the pixels: about how many of them are wrong.
def two_frames(videos):
    return np.concatenate([videos[:, 1:-1], videos[:, :-2]], axis=2)


ridge = Ridge(10.0).fit(np.concatenate(two_frames(train)), np.concatenate(train[:, 2:]))
said = {
    "the last frame again": test[:, 4:-1],
    "ridge on two frames": np.clip([ridge.predict(X) for X in two_frames(test)], 0, 1)[
        :, 3:
    ],
    "network": np.array(network.predict(list(test[:, :-1])))[:, 4:],
}
for name, frames in said.items():
    print(f"{name}: {((frames - test[:, 5:]) ** 2).sum(axis=2).mean():.1f}")

# %%
# Now the network goes on by itself. From frame 50 of two videos it sees its own frames instead,
# made black and white by ``clip``. It says well where the balls go for a few frames; then one
# fades away or loses its shape. It has learned to move what it sees, and not that balls are
# round and never vanish.
ahead = [1, 2, 3, 5, 8, 12]
fig, axes = plt.subplots(4, 6, figsize=(7, 5.4), layout="constrained")
for k, video in enumerate(test[:2]):
    free = network.forecast(
        12, context=video[:50], initial_state="zeros", clip=black_and_white
    )
    for name, frames, line in (
        ("video", video[50:], axes[2 * k]),
        ("network", free, axes[2 * k + 1]),
    ):
        for step, ax in zip(ahead, line, strict=True):
            ax.imshow(frames[step - 1].reshape(18, 18), cmap="gray_r", vmin=0, vmax=1)
            ax.set(xticks=[], yticks=[])
        line[0].set_ylabel(name)
for step, ax in zip(ahead, axes[-1], strict=True):
    ax.set_xlabel(f"{step} ahead")
plt.show()

# %%
# ``examples/benchmarks/bouncing_balls.py`` has five seeds, three balls, and the networks of the
# source: a plain one, an LSTM, and gradient control.
