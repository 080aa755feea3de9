"""
Learn while it runs
===================

A model is fitted to a plant, and then the plant changes: its gain jumps, later it
creeps, and for an hour its sensor fails. Every minute a row comes in. Fifteen minutes
from there to three decisions: how much to forget, when to forget at once, and when not
to learn.
"""

# %%
# In short
# --------
# Fit to the rows that there are, open a session, and each minute predict the row that
# has come and learn it when its target is known. (A leak rate of 1, since this plant
# multiplies single inputs, which slow units would smear.)
import matplotlib.pyplot as plt
import numpy as np

from reservoir import ESNRegressor, plotting
from reservoir.datasets import narma

X, y = narma(2500, random_state=1)
y[1500:] *= 0.5  # the gain of the plant falls
esn = ESNRegressor(100, leak_rate=1.0, forgetting=0.99, random_state=0)
esn.fit(X[:1000], y[:1000])
session, errors = esn.stream(), []
for t in range(1000, 2500):
    errors.append(session.predict(X[t : t + 1])[0] - y[t])
    session.learn(X[t : t + 1], y[t : t + 1])
print(f"R^2 of the last rows: {session.score_:.2f}")
ax = plotting.running_error(errors, window=50, index=np.arange(1000, 2500))
ax.set_xlabel("row (minutes)")
plt.show()

# %%
# The error leaps when the gain falls, at row 1500, and comes down again as older rows
# are forgotten. How fast that should be, step by step:
from sklearn.base import clone

# %%
# A plant whose gain changes
# --------------------------
# The output of the plant depends on past inputs, and not linearly; it is measured with
# noise. The gain is 1 for 2500 rows, one a minute, and then falls to .5 at once; from
# row 4000 to row 7000 it creeps up to 1.5, and stays there. The models know nothing of
# a gain: they see inputs and outputs.
n_rows, n_fit = 8000, 1000
gain = np.interp(np.arange(n_rows), [2500, 2500, 4000, 7000], [1.0, 0.5, 0.5, 1.5])


def plant(gain, rng):
    u = rng.uniform(-1, 1, len(gain))
    v = np.zeros(len(gain))
    for t in range(2, len(gain)):
        v[t] = 0.6 * v[t - 1] + u[t]
    y = gain * (np.tanh(v) + 0.5 * v * np.roll(u, 2))
    return u[:, None], y + 0.05 * rng.standard_normal(len(gain))


X, y = plant(gain, np.random.default_rng(0))

# %%
# Update a model every minute
# ---------------------------
# As above, and with settings of its own. ``forgetting=0.99`` says that each new row
# multiplies the weights of all rows before it by .99; these then add up to 1 / (1 - .99)
# = 100 rows, the memory. This plant, too, multiplies inputs two rows apart. The penalty
# is named as well: where rows fade, the one that is chosen as it comes is larger than
# this plant wants, and errors in quiet times would be a quarter larger, too.
options = {"n_units": 100, "leak_rate": 1.0, "input_scaling": 0.5}
options |= {"spectral_radius": 0.6, "alpha": 1e-4, "washout": 100}
esn = ESNRegressor(**options, forgetting=0.99, random_state=0).fit(X[:n_fit], y[:n_fit])
session = esn.stream()
guesses = []
for t in range(n_fit, n_rows):
    guesses.append(session.predict(X[t : t + 1])[0])
    session.learn(X[t : t + 1], y[t : t + 1])
errors = {"row by row": np.array(guesses) - y[n_fit:]}
print(f"R^2 of the last rows, by the session itself: {session.score_:.3f}")

# %%
# The estimator that the session came from is not changed. A stream has no test set, and
# needs none: each row is predicted before it is learned from. The error of these
# predictions is called prequential, and is what a model in use would have had;
# ``score_`` is its R², in which older rows fade. Targets may come late, in the order of
# their rows: rows that were predicted wait for them.
#
# Rows in chunks
# --------------
# Where rows come fifty at a time, or an update a minute is not needed, `partial_fit`
# goes on where the last rows ended, and so does `predict`. It solves for the
# coefficients once in a chunk, which is cheaper than row by row. By default all rows
# keep the same weight.


def follow(model, every=50):
    model.fit(X[:n_fit], y[:n_fit])
    errors = []
    for now in range(n_fit, n_rows, every):
        rows = slice(now, now + every)
        errors.append(model.predict(X[rows]) - y[rows])
        model.partial_fit(X[rows], y[rows])
    return np.concatenate(errors)


forgets = ESNRegressor(**options, forgetting=0.99, random_state=0)
errors["chunks, forgetting"] = follow(forgets)
errors["chunks, all rows"] = follow(ESNRegressor(**options, random_state=0))

# %%
# The rival is the model as it was fitted once.
once = ESNRegressor(**options, random_state=0).fit(X[:n_fit], y[:n_fit])
errors["fitted once"] = once.predict(X[n_fit:]) - y[n_fit:]

# %%
# Who follows?
# ------------
# The picture shows the root mean squared error of the last 200 predictions, below the
# gain of the plant. The grey line is the noise, which nobody can predict.
names = ["row by row", "chunks, forgetting", "chunks, all rows", "fitted once"]
fig, (top, ax) = plt.subplots(
    2, 1, figsize=(6.4, 4.8), sharex=True, height_ratios=[1, 3], layout="constrained"
)
top.plot(gain, color="black")
top.set(ylabel="gain", ylim=(0, 1.8))
plotting.running_error(
    {name: errors[name] for name in names},
    window=200,
    index=np.arange(n_fit, n_rows),
    legend=False,
    ax=ax,
)
ax.axhline(0.05, color="0.6", linewidth=1)
ax.set(xlabel="row (minutes)", xlim=(n_fit, n_rows), ylim=(0.04, 0.7))
fig.legend(loc="outside lower center", ncols=2, frameon=False)

phases = {"before": (1000, 2500), "jump": (2500, 4000)}
phases |= {"creep": (4000, 7000), "after": (7000, 8000)}


def by_phase(errors):
    parts = [errors[first - n_fit : last - n_fit] for first, last in phases.values()]
    return [np.sqrt(np.mean(part**2)) for part in parts]


print("root mean squared error" + "".join(f"{phase:>9s}" for phase in phases))
for name in reversed(names):
    print(f"{name:23s}" + "".join(f"{error:9.3f}" for error in by_phase(errors[name])))

# %%
# - While nothing changes (*before*), forgetting costs something: a hundred rows say
#   less of the plant than all rows do.
# - Behind the jump, the model that keeps all rows describes the mean of old and new
#   ones, and has not outweighed the old when the gain is on its way to somewhere else.
#   (That the model fitted once is right near row 5500 is no merit: the gain passes 1.)
# - With forgetting the errors are small again as soon as a few memories' worth of rows
#   have come, and stay so while the gain creeps. Row by row is slightly better than in
#   chunks.
#
# First decision: how much to forget
# ----------------------------------
# A long memory averages the noise out, a short one is up to date; in between the error
# has a valley. Take rows that have been recorded, follow them with several factors, and
# keep the best. Since each row is predicted before it is learned from, none need to be
# held back. Three seeds, each with another network, because one network might be lucky.
memories = [30, 100, 300, 1000]


def valley(seed):
    esn = ESNRegressor(**options, random_state=seed)
    models = [clone(esn).set_params(forgetting=1 - 1 / n) for n in memories]
    return [by_phase(follow(model, every=200)) for model in models]


found = np.array([valley(seed) for seed in range(3)])
fig, ax = plt.subplots(figsize=(6.4, 3.2), layout="constrained")
markers = ["o:", "s--", "^-.", "v-"]
for phase, marker, mean in zip(phases, markers, found.mean(axis=0).T, strict=True):
    ax.plot(memories, mean, marker, markersize=5, label=phase)
ax.set(xscale="log", yscale="log", ylabel="RMS error, mean of 3 seeds")
ax.set_xlabel("memory in rows, 1 / (1 - forgetting)")
ax.set_xticks(memories, [str(rows) for rows in memories])
ax.set_ylim(0.05, 0.3)
ax.minorticks_off()
ax.legend(frameon=False, loc="upper left", bbox_to_anchor=(1, 1))
shares = [(last - first) / (n_rows - n_fit) for first, last in phases.values()]
overall = np.sqrt(found**2 @ shares)
for seed, best in enumerate(overall.argmin(axis=1)):
    print(
        f"seed {seed}: least error of all rows with a memory of {memories[best]} rows, "
        f"{overall[seed, best]:.3f}"
    )


# %%
# The picture shows the valleys of the four stretches. The constant one (*before*) wants
# as much memory as it can get, the jump and the creep want less. The order of magnitude
# has to be right, not the factor, and it is easier to think of as a memory: for how
# many rows does the plant stay much the same? Take a third of that. With a memory below
# the number of units the penalty ``alpha`` matters more, and should be chosen in the
# same way.
#
# Second decision: when to forget at once
# ---------------------------------------
# One rate is a compromise between quiet times and jumps. A session calls ``callback``
# after each `learn`, and the callback may make it forget. Here it keeps a slow mean of
# squared errors and a quick one; where the quick one is five times the slow one, the
# plant has jumped, and what was learned so far is to weigh a hundredth. (`river
# <https://riverml.xyz>`_ has detectors with theory behind them;
# ``detector.update(abs(session.last_errors_[0]))`` is what they want.)
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
patient = ESNRegressor(**options, forgetting=0.999, random_state=0)
patient.fit(X[:n_fit], y[:n_fit])
compared = {"memory of 100": errors["row by row"][: 3000 - n_fit]}
for name, callback in {"memory of 1000": None, "and a callback": watch}.items():
    session, guesses = patient.stream(callback=callback), []
    for t in range(n_fit, 3000):
        guesses.append(session.predict(X[t : t + 1])[0])
        session.learn(X[t : t + 1], y[t : t + 1])
    compared[name] = np.array(guesses) - y[n_fit:3000]
for name, error in compared.items():
    before, behind = (np.sqrt(np.mean(e**2)) for e in (error[:1500], error[1500:]))
    print(f"{name:15s} before the jump {before:.3f}, behind it {behind:.3f}")
print("forgot at rows", watch.found_at)

# %%
# As small as with a long memory while nothing changes, and smaller than with a short
# one behind the jump. A creep it would find late: there forgetting at a steady rate is
# better.
#
# Third decision: when not to learn
# ---------------------------------
# A model that learns from everything learns nonsense, too. For an hour the sensor reads
# 10, which the plant never does. A guard knows the usual error and does not learn from
# a row whose error is more than six times as large; `predict` moves the state on all
# the same. The usual error is learned from what was let through.
measured = y.copy()
measured[2000:2060] = 10.0


def error_with(guard):
    session, usual, found = esn.stream(), 0.06, []
    for t in range(n_fit, 3000):
        row = X[t : t + 1]
        guess = session.predict(row)[0]
        surprise = abs(guess - measured[t])
        if surprise < guard * usual:
            session.learn(row, measured[t : t + 1])
            usual += (surprise - usual) / 100
        found.append(guess - y[t])
    return np.array(found)


parts = {"before": (1500, 2000), "fault": (2000, 2060), "hour after": (2060, 2120)}
parts |= {"next 380": (2120, 2500), "jump": (2500, 3000)}
print("RMS error, true output " + "".join(f"{part:>12s}" for part in parts))
for name, guard in {"learns all": np.inf, "with a guard": 6}.items():
    found = error_with(guard)
    squares = [found[a - n_fit : b - n_fit] ** 2 for a, b in parts.values()]
    means = [np.sqrt(np.mean(each)) for each in squares]
    print(f"{name:23s}" + "".join(f"{mean:12.3f}" for mean in means))

# %%
# One hour of nonsense costs many hours. The guard lets the jump through, because a
# plant with half its gain is wrong by less than six times the usual; a larger jump
# would be refused for ever. So count what is refused, and if it goes on, ask somebody.
# Bounds that come from the plant itself (no reading above 4) are better than any
# factor. Targets that are simply missing are passed over: ``missing_targets="skip"``
# (:doc:`plot_missing_values`).
#
# A classifier learns in the same way; `classes` in its first `partial_fit` lists what may
# come later (:doc:`/guide/classification`). A session is saved with all that it has
# learned (:doc:`plot_save_and_serve`): keep one of every day to go back to.
plt.show()

# sphinx_gallery_thumbnail_number = 2
# %%
# The decisions
# -------------
# - A row a minute: `stream()`, `predict`, `learn`. Many rows a second, or an update now
#   and then: `partial_fit` in chunks.
# - ``forgetting``: a memory of a third of the time for which the plant stays much the
#   same, or the best on recorded rows. Little forgetting and a callback where quiet
#   times are long.
# - A guard in front of `learn`, and a saved session to go back to.
#
# More changes than a readout can follow: :doc:`/gallery/online/plot_online_adaptation`.
# What learning costs per row, beside other ways, and factors for five kinds of drift:
# :doc:`/guide/online`. What forgetting is exactly: :doc:`/theory/readouts`.
