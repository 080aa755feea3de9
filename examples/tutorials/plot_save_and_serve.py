"""
Save a model, and serve it
==========================

Save a fitted model in one file, load it in another program, and answer row by row.

The other program runs tomorrow or on another machine:
"""

import tempfile
from pathlib import Path

import reservoir
from reservoir import ESNRegressor
from reservoir.datasets import narma

X, y = narma(4000, random_state=0)
options = {"leak_rate": 1.0, "input_scaling": 0.1, "random_state": 0}
esn = ESNRegressor(100, **options).fit(X[:1500], y[:1500])
file = Path(tempfile.mkdtemp(), "model.npz")
reservoir.save(esn, file)
session = reservoir.load(file).stream()  # in any process
print([f"{session.predict(X[t : t + 1])[0]:.3f}" for t in range(1500, 1504)])

# %%
# The file contains arrays and text. It is no pickle: reading it runs no code, and does not need the
# same version of Python, NumPy or scikit-learn. The rest of the page shows a service that learns
# while it serves, and measures how large and how fast all this is.
#
# The task is NARMA10. It multiplies single inputs, which slow units would smear, so the leak rate
# is 1. The model is fitted to 1500 rows. The rows after them arrive later.
#
# Load it in another process
# --------------------------
# These three lines are the whole program at the other end. `predict` continues where training
# ended, since the state is in the file. Here a second Python runs the program.
import subprocess
import sys
import time

import joblib
import matplotlib.pyplot as plt
import numpy as np
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from reservoir import plotting

n_fit, folder = 1500, file.parent
new, target = X[n_fit : n_fit + 200], y[n_fit : n_fit + 200]
np.save(folder / "rows.npy", new)
program = """
import numpy as np, reservoir
model = reservoir.load("model.npz")
np.save("answers.npy", model.predict(np.load("rows.npy")))
"""
subprocess.run([sys.executable, "-c", program], cwd=folder, check=True)
answers = np.load(folder / "answers.npy")
print("the same numbers:", np.array_equal(answers, esn.predict(new)))
print(f"error {np.sqrt(np.mean((answers - target) ** 2)):.4f}, ", end="")
print(f"of the mean as a prediction {target.std():.4f}")


# %%
# Answer row by row
# -----------------
# Do not call `predict` of the estimator for each row of a stream: each call begins at the end of
# training. A session, made by `stream`, keeps the state from call to call.
class Service:
    def __init__(self, file):
        self.session = reservoir.load(file).stream()

    def answer(self, row):
        return float(self.session.predict(np.reshape(row, (1, -1)))[0])

    def learn(self, row, target):
        self.session.learn(np.reshape(row, (1, -1)), np.reshape(target, 1))


service = Service(file)
one_by_one = np.array([service.answer(row) for row in new])
print(f"largest difference from one call: {np.abs(one_by_one - answers).max():.0e}")


# %%
# Behind a port it needs a few more lines. This is a sketch with Python's server, without any
# protection:
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
# Ask it with ``curl -d '{"x": [0.2]}' http://127.0.0.1:8000``. Load the model once, and open a
# session with its own lock for each series. The rows of a series come in order, one at a time.
#
# How long does an answer take?
# -----------------------------
# That depends on the number of units and on the machine. These are times of the machine that built
# this page.
fig, ax = plt.subplots(figsize=(6.4, 3.2), layout="constrained")
print(f"{'units':>6s}{'median':>9s}{'99 of 100':>11s}   microseconds a row")
for n_units in (30, 100, 300, 1000):
    session = ESNRegressor(n_units, **options).fit(X[:n_fit], y[:n_fit]).stream()
    took = []
    for row in X[n_fit : n_fit + 1000, None]:
        tick = time.perf_counter()
        session.predict(row)
        took.append(1e6 * (time.perf_counter() - tick))
    print(f"{n_units:6d}{np.median(took):9.0f}{np.quantile(took, 0.99):11.0f}")
    ax.plot(np.sort(took), np.linspace(0, 100, len(took)), label=f"{n_units} units")
ax.set(xscale="log", xlabel="microseconds for one row", ylabel="% of rows")
ax.set_title("answered within this time", loc="left", fontsize="medium")
ax.legend(frameon=False)

# %%
# Most of the time of a small network are the checks of each call. If rows arrive faster than that,
# pass several at a time: `predict` and `learn` take any number.
#
# Learn while serving
# -------------------
# From row 2500 on the output of the plant is half of what it was. `learn` takes the target when it
# is known, and corrects the readout by recursive least squares. The forgetting factor sets how fast
# old rows fade (:doc:`plot_learn_while_it_runs`). `score_` is the R² of the latest answers.
drifting = np.where(np.arange(len(y)) < 2500, y, 0.5 * y)
service, fixed = Service(file), Service(file)
service.session.forgetting = 0.995
errors = {"as it was loaded": [], "learns while it serves": []}
for row, target in zip(X[n_fit:], drifting[n_fit:], strict=True):
    errors["as it was loaded"].append(fixed.answer(row) - target)
    errors["learns while it serves"].append(service.answer(row) - target)
    service.learn(row, target)
print(f"learned from {service.session.n_learned_} rows, ", end="")
print(f"R² of the latest {service.session.score_:.2f}")

ax = plotting.running_error(errors, index=np.arange(n_fit, len(y)))
ax.axvline(2500, color="0.6", linewidth=1)
ax.set_xlabel("row")
# sphinx_gallery_thumbnail_number = 2

# %%
# The grey line is where the plant changes. Save the *session* now and then, and when the service
# stops. The file contains what it has learned, its state and its score. Write a new file and rename
# it, so that a crash leaves the old one whole.
reservoir.save(service.session, folder / "session.npz.new")
(folder / "session.npz.new").replace(folder / "session.npz")
resumed = reservoir.load(folder / "session.npz")
same = resumed.predict(X[:1]) == service.session.predict(X[:1])
print("continues with the same answer:", bool(same[0]))

# %%
# How large is the file?
# ----------------------
# Most of it are sums over the rows of training, one number for each pair of units: with them
# `partial_fit` and `learn` continue as if they had seen all rows. They are stored for two halves of
# the rows, by which the penalty is chosen. With a given penalty, such as ``alpha=1e-6``, they are
# stored once. So the size grows with the square of the number of units. ``dtype="float32"``
# halves states and weights, but not the sums.
print(f"{'units':>6s}{'dtype':>10s}{'kB':>7s}   test error")
for n_units in (30, 100, 300):
    for dtype in ("float64", "float32"):
        model = ESNRegressor(n_units, dtype=dtype, **options)
        reservoir.save(model.fit(X[:n_fit], y[:n_fit]), folder / "size.npz")
        size = (folder / "size.npz").stat().st_size / 1e3
        test = np.sqrt(np.mean((model.predict(X[n_fit:]) - y[n_fit:]) ** 2))
        print(f"{n_units:6d}{dtype:>10s}{size:7.0f}   {test:.5f}")

# %%
# Pipelines and searches: what is safe?
# -------------------------------------
# `save` rejects what arrays and text cannot represent, such as a pipeline. *joblib* saves it, for
# files that you wrote yourself: whoever can write the file can run code in the process that loads
# it. Versions of Python and scikit-learn should agree.
pipe = make_pipeline(StandardScaler(), esn).fit(X[:n_fit], y[:n_fit])
try:
    reservoir.save(pipe, folder / "pipe.npz")
except TypeError as error:
    print(error)
joblib.dump(pipe, folder / "pipe.joblib")
again = joblib.load(folder / "pipe.joblib")
print("the same numbers:", np.array_equal(again.predict(X[:9]), pipe.predict(X[:9])))
plt.show()

# %%
# *skops* (``pip install skops``) saves the same objects in a file that is safe to read: the loader
# rejects types that you did not name, and `skops_types` names those of this package
# (:doc:`/saving`).
#
# .. code-block:: python
#
#     import skops.io
#     from reservoir.interop import skops_types
#
#     skops.io.dump(pipe, "pipe.skops")
#     pipe = skops.io.load("pipe.skops", trusted=skops_types())
#
# Which one?
#
# - An estimator of this package, or a session: `reservoir.save`. Later versions read files of older
#   ones. A file of a later format raises, with the advice to upgrade.
# - A pipeline, a search: skops if others may have changed the file, else joblib.
# - Store the version of the package and the score on held-out rows with the file, and check the
#   score after loading.
