"""
Learn while it runs
===================

Follow a plant whose gain falls: each minute a model predicts the new row, and learns it when its
target is known.
"""

import numpy as np

from reservoir import ESNRegressor, plotting
from reservoir.datasets import narma

X, y = narma(2500, random_state=1)
y[1500:] *= 0.5  # the gain of the plant falls
esn = ESNRegressor(100, leak_rate=1.0, forgetting=0.99, random_state=0)
session, errors = esn.fit(X[:1000], y[:1000]).stream(), []
for t in range(1000, 2500):
    errors.append(session.predict(X[t : t + 1])[0] - y[t])
    session.learn(X[t : t + 1], y[t : t + 1])
plotting.running_error(errors, window=50, index=np.arange(1000, 2500))

# %%
# The error jumps at row 1500, where the gain falls, and falls again as older rows fade.
# The rest of the page decides how much to forget, when to forget at once, and when not to learn.
#
# A plant whose gain changes
# --------------------------
# The output of this plant depends on past inputs, not linearly, and has noise. The gain is 1 for
# 2500 rows, one a minute. Then it falls to .5. From row 4000 to row 7000 it rises to 1.5. The
# models receive inputs and outputs only.
import matplotlib.pyplot as plt
import pandas as pd
from scipy.signal import lfilter
from sklearn.base import clone

n_rows, n_fit = 8000, 1000
gain = np.interp(np.arange(n_rows), [2500, 2500, 4000, 7000], [1.0, 0.5, 0.5, 1.5])


def plant(gain, rng):
    u = rng.uniform(-1, 1, len(gain))
    v = lfilter([1], [1, -0.6], u)  # v[t] = 0.6 * v[t - 1] + u[t]
    y = gain * (np.tanh(v) + 0.5 * v * np.roll(u, 2))
    return u[:, None], y + 0.05 * rng.standard_normal(len(gain))


X, y = plant(gain, np.random.default_rng(0))

# %%
# Row by row, in chunks, or not at all
# ------------------------------------
# With ``forgetting=0.99`` each new row multiplies the weights of all rows before it by .99. The
# weights add up to 1 / (1 - .99) = 100 rows, the *memory*. The leak rate is 1, since this plant
# multiplies single inputs, which slow units would smear. The penalty is set: the one that is chosen
# automatically is too large for fading rows here.
#
# `stream` opens a session and leaves the estimator as it is. Each row is predicted before it is
# learned, so a stream needs no test set. Targets may arrive late, in the order of their rows.
options = {"n_units": 100, "leak_rate": 1.0, "input_scaling": 0.5}
options |= {"spectral_radius": 0.6, "alpha": 1e-4, "washout": 100}
esn = ESNRegressor(**options, forgetting=0.99, random_state=0).fit(X[:n_fit], y[:n_fit])


def row_by_row(session, end=n_rows):
    predictions = []
    for t in range(n_fit, end):
        predictions.append(session.predict(X[t : t + 1])[0])
        session.learn(X[t : t + 1], y[t : t + 1])
    return np.array(predictions) - y[n_fit:end]


errors = {"row by row": row_by_row(session := esn.stream())}
print(f"R² of the last rows, from the session: {session.score_:.3f}")

# %%
# If rows arrive fifty at a time, `partial_fit` continues after the last row, and solves once a
# chunk, which is cheaper. The simplest rival is the model that was fitted once.


def in_chunks(model, every=50):
    model.fit(X[:n_fit], y[:n_fit])
    errors = []
    for now in range(n_fit, n_rows, every):
        rows = slice(now, now + every)
        errors.append(model.predict(X[rows]) - y[rows])
        model.partial_fit(X[rows], y[rows])
    return np.concatenate(errors)


keeps_all = ESNRegressor(**options, random_state=0)
errors["chunks, forgetting"] = in_chunks(clone(esn))
errors["chunks, all rows"] = in_chunks(keeps_all)
keeps_all.fit(X[:n_fit], y[:n_fit])  # once more, from scratch
errors["fitted once"] = keeps_all.predict(X[n_fit:]) - y[n_fit:]

shape = {"figsize": (6.4, 4.8), "sharex": True, "layout": "constrained"}
fig, (top, ax) = plt.subplots(2, 1, height_ratios=[1, 3], **shape)
top.plot(gain, color="black")
top.set(ylabel="gain", ylim=(0, 1.8))
index = range(n_fit, n_rows)
plotting.running_error(errors, window=200, index=index, legend=False, ax=ax)
ax.axhline(0.05, color="0.6", linewidth=1)
ax.set(xlabel="row (minutes)", xlim=(n_fit, n_rows), ylim=(0.04, 0.7))
fig.legend(loc="outside lower center", ncols=2, frameon=False)
# sphinx_gallery_thumbnail_number = 2

phases = {"before": (1000, 2500), "jump": (2500, 4000)}
phases |= {"creep": (4000, 7000), "after": (7000, 8000)}


def by_phase(errors, phases=phases):
    parts = {name: errors[a - n_fit : b - n_fit] for name, (a, b) in phases.items()}
    return {name: round(np.sqrt(np.mean(part**2)), 3) for name, part in parts.items()}


print(pd.DataFrame({name: by_phase(e) for name, e in errors.items()}).T)

# %%
# Root mean squared errors; in the picture those of the last 200 rows, and the noise in grey.
#
# - While nothing changes (*before*), forgetting costs something: 100 rows say less than all rows.
# - After the jump, the model that keeps all rows describes the mean of old and new ones.
# - With forgetting the errors are soon small again. Row by row is slightly better than in chunks.
#
# First decision: how much to forget
# ----------------------------------
# A long memory averages the noise out, a short one is up to date. Follow recorded rows with several
# memories, and keep the best. Three seeds, each with another network, guard against luck.
found = {}
for memory in (30, 100, 300, 1000):
    model = clone(esn).set_params(forgetting=1 - 1 / memory)
    runs = [
        by_phase(in_chunks(model.set_params(random_state=i), 200)) for i in range(3)
    ]
    found[f"{memory} rows"] = pd.DataFrame(runs).mean()
print("root mean squared error by memory, mean of 3 seeds")
print(pd.DataFrame(found).round(3).T)


# %%
# The constant phase (*before*) wants a long memory, the jump and the creep a shorter one. The order
# of magnitude matters. For how many rows does the plant stay much the same? Take a third of that.
#
# Second decision: when to forget at once
# ---------------------------------------
# One rate is a compromise between quiet times and jumps. A session calls ``callback`` after each
# `learn`, and the callback may make it forget. This one keeps a slow and a quick mean of squared
# errors. If the quick one is five times the slow one, the plant has jumped, and the weights of all
# rows so far are multiplied by .01. (`river <https://riverml.xyz>`_ has detectors with theory.)
class Watch:
    def __init__(self):
        self.quick = self.slow = 0.06**2  # as on the rows of the fit
        self.found_at = []

    def __call__(self, session):
        now = float(session.last_errors_[0] ** 2)
        self.quick += (now - self.quick) / 20
        self.slow += (now - self.slow) / 500
        if self.quick > 5 * self.slow:
            session.forget(0.01)
            self.slow = self.quick
            self.found_at.append(n_fit + session.n_learned_)


watch = Watch()
patient = clone(esn).set_params(forgetting=0.999).fit(X[:n_fit], y[:n_fit])
parts = {"1500 before the jump": (1000, 2500), "500 after it": (2500, 3000)}
compared = {
    "memory of 100": errors["row by row"],
    "memory of 1000": row_by_row(patient.stream(), 3000),
    "and a callback": row_by_row(patient.stream(callback=watch), 3000),
}
print(pd.DataFrame({name: by_phase(e, parts) for name, e in compared.items()}).T)
print("forgot at rows", watch.found_at)

# %%
# With the callback, errors are small before the jump and after it. It would find a creep late.
#
# Third decision: when not to learn
# ---------------------------------
# A model that learns from everything learns nonsense, too. For an hour the sensor reads 10, which
# the plant never reaches. A guard does not learn a row whose error is more than six times the usual
# one. `predict` advances the state all the same.
measured = y.copy()
measured[2000:2060] = 10.0


def errors_with(guard):
    session, usual, found = esn.stream(), 0.06, []
    for t in range(n_fit, 3000):
        prediction = session.predict(X[t : t + 1])[0]
        surprise = abs(prediction - measured[t])
        if surprise < guard * usual:
            session.learn(X[t : t + 1], measured[t : t + 1])
            usual += (surprise - usual) / 100
        found.append(prediction - y[t])
    return np.array(found)


parts = {"fault": (2000, 2060), "440 rows after": (2060, 2500), "jump": (2500, 3000)}
guards = {"learns all": np.inf, "with a guard": 6}
print("root mean squared error of the true output")
print(pd.DataFrame({n: by_phase(errors_with(g), parts) for n, g in guards.items()}).T)

# %%
# One hour of nonsense costs many hours. The guard lets this jump through. A larger one would be
# skipped for ever, so count the skipped rows, and raise an alarm if there are many. Bounds that
# come from the plant itself (no reading above 4) are better than any factor.
#
# To take away
# ------------
# - A row a minute: `stream`, `predict`, `learn`. Many rows a second: `partial_fit` in chunks.
# - A memory as above, or the best on recorded rows. For rare jumps a long one, and a callback.
# - A guard before `learn`, and a :doc:`saved <plot_save_and_serve>` session to go back to.
#
# Missing targets: :doc:`plot_missing_values`. Classifiers: :doc:`/guide/classification`. Costs, and
# factors for five kinds of drift: :doc:`/guide/online`. The theory: :doc:`/theory/readouts`.
# Changes that a readout cannot follow: :doc:`/gallery/online/plot_online_adaptation`.
plt.show()
