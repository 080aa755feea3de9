"""
Save a model, and serve it
==========================

You have a fitted model, and another program is to use it: tomorrow, on another machine,
row by row as they arrive. At the end you will have a file that any process can read
without running code of yours, a loop that answers each row at once and goes on
learning, and figures of how large and how fast that is.
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import joblib
import matplotlib.pyplot as plt
import numpy as np
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import reservoir
from reservoir import ESNRegressor, plotting
from reservoir.datasets import narma

# %%
# One file
# --------
# The model answers inputs with outputs at each step. It is fitted to 1500 rows; the
# rows behind them will arrive later. `save` writes one file of arrays and text. It is
# no pickle: reading it runs no code, and it does not ask for the same version of
# Python, NumPy or scikit-learn. (A leak rate of 1 suits the task, NARMA10: it multiplies
# single inputs, which slow units would smear.)
X, y = narma(4000, random_state=0)
n_fit = 1500
options = {"leak_rate": 1.0, "input_scaling": 0.1, "random_state": 0}
esn = ESNRegressor(100, **options).fit(X[:n_fit], y[:n_fit])

folder = Path(tempfile.mkdtemp())
reservoir.save(esn, folder / "model.npz")
size = (folder / "model.npz").stat().st_size
print(f"model.npz: {size / 1e3:.0f} kB")

# %%
# Load it in another process
# --------------------------
# Three lines are the whole program at the other end. It knows nothing but the two
# files: `predict` goes on from where training ended, since the state is in the file as
# well. Here a second Python runs it.
np.save(folder / "rows.npy", X[n_fit : n_fit + 200])
program = """
import numpy as np, reservoir
model = reservoir.load("model.npz")
np.save("answers.npy", model.predict(np.load("rows.npy")))
"""
subprocess.run([sys.executable, "-c", program], cwd=folder, check=True)
answers = np.load(folder / "answers.npy")
ours = esn.predict(X[n_fit : n_fit + 200])
print("the same numbers:", np.array_equal(answers, ours))
right = y[n_fit : n_fit + 200]
print(f"error of the answers {np.sqrt(np.mean((answers - right) ** 2)):.4f}, ", end="")
print(f"of always the mean {right.std():.4f}")


# %%
# Answer row by row
# -----------------
# Do not call `predict` for each row of a stream: each call would begin again at the end
# of training. A session, made by `stream()`, keeps the state from call to call. This
# function is a server without the network around it: it takes the text of a request and
# returns the text of an answer.
class Service:
    def __init__(self, file):
        self.session = reservoir.load(file).stream()

    def answer(self, row):
        return float(self.session.predict(np.reshape(row, (1, -1)))[0])

    def learn(self, row, target):
        self.session.learn(np.reshape(row, (1, -1)), np.reshape(target, 1))


service = Service(folder / "model.npz")
one_by_one = np.array([service.answer(row) for row in X[n_fit : n_fit + 200]])
print("as all at once, to", np.abs(one_by_one - ours).max())


# %%
# Behind a port it needs a few lines more. With Python's own server, as a sketch (one
# series for one service; nothing here keeps strangers out):
#
# .. code-block:: python
#
#     import json
#     import threading
#     from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
#
#     lock = threading.Lock()
#
#     class Handler(BaseHTTPRequestHandler):
#         def do_POST(self):
#             length = int(self.headers["Content-Length"])
#             asked = json.loads(self.rfile.read(length))
#             with lock:  # one row at a time: each moves the state on
#                 y = service.answer(asked["x"])
#             reply = json.dumps({"y": y}).encode()
#             self.send_response(200)
#             self.end_headers()
#             self.wfile.write(reply)
#
#     ThreadingHTTPServer(("127.0.0.1", 8000), Handler).serve_forever()
#
# Ask it with ``curl -d '{"x": [0.2]}' http://127.0.0.1:8000``. Three rules for the real
# thing: load the model once, and make a session of it for each series (sessions do not
# know each other), with a lock of its own; the rows of a series come in order, and one
# at a time.
#
# How long does an answer take?
# -----------------------------
# That depends on the number of units and on the machine, so measure it. These are times
# of the machine that built this page.
def microseconds(call, rows):
    found = []
    for row in rows:
        tick = time.perf_counter()
        call(row)
        found.append(1e6 * (time.perf_counter() - tick))
    return np.array(found)


sizes = [30, 100, 300, 1000]
fig, ax = plt.subplots(figsize=(6.4, 3.2), layout="constrained")
print(f"{'units':>6s}{'median':>9s}{'99 of 100':>11s}   microseconds per row")
medians = []
for n_units in sizes:
    model = ESNRegressor(n_units, **options)
    session = model.fit(X[:n_fit], y[:n_fit]).stream()
    took = microseconds(session.predict, X[n_fit : n_fit + 1000, None])
    medians.append(np.median(took))
    print(f"{n_units:6d}{medians[-1]:9.0f}{np.quantile(took, 0.99):11.0f}")
    ax.plot(np.sort(took), np.linspace(0, 100, len(took)), label=f"{n_units} units")
ax.set(xscale="log", xlabel="microseconds for one row", ylabel="% of rows")
ax.set_title("answered within this time", loc="left", fontsize="medium")
ax.legend(frameon=False)

# %%
# Most of the time of a small network is Python's: the checks of each call. If rows
# arrive faster than that, hand them over in chunks of some rows; `predict` and `learn`
# take any number.
#
# Learn while serving
# -------------------
# The plant behind the rows changes: from row 2500 on its output is half of what it was.
# `learn` takes the target as soon as it is known, and corrects the readout by recursive
# least squares; a forgetting factor says how fast old rows fade
# (:doc:`plot_learn_while_it_runs` says how to choose it). `score_` is the session's own
# R^2 of its latest answers, and `n_learned_` counts the rows.
drifting = np.where(np.arange(len(y)) < 2500, y, 0.5 * y)
service = Service(folder / "model.npz")
fixed = Service(folder / "model.npz")
service.session.forgetting = 0.995
errors = {"as it was loaded": [], "learns while it serves": []}
for row, target in zip(X[n_fit:], drifting[n_fit:], strict=True):
    errors["as it was loaded"].append(fixed.answer(row) - target)
    errors["learns while it serves"].append(service.answer(row) - target)
    service.learn(row, target)
print(f"learned from {service.session.n_learned_} rows, ", end="")
print(f"R^2 of the latest {service.session.score_:.2f}")

ax = plotting.running_error(errors, index=np.arange(n_fit, len(y)))
ax.axvline(2500, color="0.6", linewidth=1)
ax.set_xlabel("row")

# %%
# The grey line is where the plant changes. Save the *session*, now and then, and when
# the service stops: the file holds what it has learned, its state and its score, and
# serving goes on as if nothing had been. Write beside the file and rename, so that a
# crash leaves the old one whole.
reservoir.save(service.session, folder / "session.npz.new")
(folder / "session.npz.new").replace(folder / "session.npz")
resumed = reservoir.load(folder / "session.npz")
next_row = X[:1]
same = resumed.predict(next_row) == service.session.predict(next_row)
print("goes on with the same answer:", bool(same[0]))


# %%
# How large is the file?
# ----------------------
# Most of it are sums over the rows of training, one number for each pair of units, in
# double precision: with them `partial_fit` and `learn` go on as if they had seen all
# rows. They are kept for two halves of the rows, by which the penalty is chosen; with a
# penalty that is given, such as ``alpha=1e-6``, once, which takes half as much. So the
# size grows with the square of the number of units, and ``dtype="float32"``, which
# halves states and weights, changes little of it; nor does it change the error.
def kilobytes(model):
    reservoir.save(model, folder / "size.npz")
    return (folder / "size.npz").stat().st_size / 1e3


print(f"{'units':>6s}{'dtype':>10s}{'kB':>7s}   test error")
for n_units in (30, 100, 300):
    for dtype in ("float64", "float32"):
        model = ESNRegressor(n_units, dtype=dtype, **options)
        model.fit(X[:n_fit], y[:n_fit])
        test = np.sqrt(np.mean((model.predict(X[n_fit:]) - y[n_fit:]) ** 2))
        print(f"{n_units:6d}{dtype:>10s}{kilobytes(model):7.0f}   {test:.5f}")

# %%
# Pipelines and searches: what is safe?
# -------------------------------------
# `save` refuses what arrays and text cannot hold, by name. A pipeline is such a thing:
pipe = make_pipeline(StandardScaler(), esn).fit(X[:n_fit], y[:n_fit])
try:
    reservoir.save(pipe, folder / "pipe.npz")
except TypeError as error:
    print(error)

# %%
# There are two ways for it. *joblib* keeps everything, and is for files that you wrote
# yourself: whoever can write the file can run code in the process that loads it, and
# versions of Python and scikit-learn should agree.
joblib.dump(pipe, folder / "pipe.joblib")
again = joblib.load(folder / "pipe.joblib")
print("the same numbers:", np.array_equal(again.predict(X[:9]), pipe.predict(X[:9])))

# %%
# *skops* (``pip install skops``) keeps the same objects in a file that is safe to read:
# the loader refuses types that you did not name. Look at the list before you trust it;
# it is in :doc:`/saving`.
#
# .. code-block:: python
#
#     import skops.io
#
#     skops.io.dump(pipe, "pipe.skops")
#     needed = skops.io.get_untrusted_types(file="pipe.skops")
#     print(needed)  # read it: nothing but classes of reservoir
#     pipe = skops.io.load("pipe.skops", trusted=needed)
#
# Which one?
#
# - An estimator of this package, or a session: `reservoir.save`. A file of an older
#   version is read by later ones; one of a later format is refused, with the advice to
#   upgrade.
# - A pipeline, a search: skops, if others may have touched the file; joblib if not.
# - To be sure what is served, keep the version of the package and the score on rows
#   kept aside with the file, and check the score after loading.
print("written by reservoir", reservoir.__version__)
plt.show()
