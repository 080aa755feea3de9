"""
What grows with the series, and what with the network
=====================================================

See how time and memory of a fit grow with the rows, the series and the units, measured while this
page was built.

Before a long run one wants to know how long it takes. A fit takes time in proportion to the rows,
and memory that does not depend on them; many series together cost what their rows cost; the number
of units is what to be careful with. The picture shows all three, measured while this page was
built.
"""

import time
import tracemalloc

import matplotlib.pyplot as plt
import numpy as np

from reservoir import ESNRegressor

# %%
# One way to measure them all
# ---------------------------
# `cost` fits a network to series of random inputs, whose targets are the inputs three steps
# before, three times: to warm up, with a count of the memory that Python and NumPy ask for, and
# with a clock. Seconds depend on the machine, and on what else it does; how they grow does not.
rng = np.random.default_rng(0)


def cost(n_units, n_rows, n_series=1):
    series = [rng.uniform(-1, 1, (n_rows, 1)) for _ in range(n_series)]
    X, y = series, [np.roll(x[:, 0], 3) for x in series]
    if n_series == 1:
        X, y = X[0], y[0]
    esn = ESNRegressor(n_units, washout=100, random_state=0)
    esn.fit(X, y)  # the first of its kind loads what it needs: that does not count
    tracemalloc.start()
    esn.fit(X, y)
    memory = tracemalloc.get_traced_memory()[1] / 1e6
    tracemalloc.stop()
    start = time.perf_counter()
    esn.fit(X, y)
    seconds = time.perf_counter() - start
    return seconds, memory


# %%
# Rows
# ----
# Ten times the rows take ten times as long, and no more memory: states are added up in blocks
# and dropped. The last column is what they would take if they were kept.
rows = [1000, 3000, 10_000, 30_000, 100_000]
by_rows = [cost(100, n) for n in rows]
print("100 units, one series")
print("   rows  seconds  memory, MB  states, MB")
for n, (seconds, memory) in zip(rows, by_rows, strict=True):
    print(f"{n:7d}{seconds:9.2f}{memory:12.1f}{8e-6 * 100 * n:12.1f}")

# %%
# Series
# ------
# A hundred series in a list are one fit: the network starts each of them anew, and learns from
# all. They cost what their rows cost. Where each series is to have a network of its own, it is a
# loop, and several processes share it: ``ESNForecaster(panel="each", n_jobs=-1)`` does so
# (:doc:`/tutorials/plot_many_series`), as do scikit-learn's searches with their `n_jobs`.
many = [1, 10, 100]
by_series = [cost(100, 500, n) for n in many]
print("100 units, series of 500 rows")
print(" series  seconds  memory, MB")
for n, (seconds, memory) in zip(many, by_series, strict=True):
    print(f"{n:7d}{seconds:9.2f}{memory:12.1f}")

# %%
# Units
# -----
# A state costs a few operations per connection, and each unit has ten: that grows as the units.
# What the readout adds up for each row is a matrix of units by units, and solving for the
# weights takes the cube, a few times where the penalty is chosen, as here: from some hundred
# units on the fit takes this time.
units = [50, 100, 200, 400, 800, 1600]
by_units = [cost(n, 5000) for n in units]
print("one series of 5000 rows")
print("  units  seconds  memory, MB")
for n, (seconds, memory) in zip(units, by_units, strict=True):
    print(f"{n:7d}{seconds:9.2f}{memory:12.1f}")

# %%
# In pictures
# -----------
# Both axes are logarithmic: the dotted lines are in proportion to the rows and to the series,
# and to the square of the units.
fig, axes = plt.subplots(3, 1, figsize=(6, 7.5), layout="constrained")
panels = [
    ("rows", rows, by_rows, 1),
    ("series", many, by_series, 1),
    ("units", units, by_units, 2),
]
for ax, (name, sizes, costs, power) in zip(axes, panels, strict=True):
    seconds = np.array(costs)[:, 0]
    guide = seconds[-1] * (np.array(sizes) / sizes[-1]) ** power
    ax.loglog(sizes, seconds, "o-", color="black", label="one fit")
    ax.loglog(sizes, guide, ":", color="C0", label=f"{name}²" if power == 2 else name)
    ax.set(xlabel=name, ylabel="seconds")
    ax.legend(frameon=False)
plt.show()

# %%
# Two ways to do the same sums
# ----------------------------
# With numba installed (``pip install ".[fast]"`` in a checkout) larger jobs run in compiled loops;
# the results are the same to rounding. ``engine="auto"``, the default, decides by the size of
# the job. :doc:`/performance` has figures up to 100,000 units and a million rows, for both
# engines, and beside other libraries.
