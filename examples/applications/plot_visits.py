"""
Visits: whether damage follows, from irregular rows
===================================================

Predict from visits at irregular times which patients will have damage.

A patient comes after a week, then after a year; each time some values are measured. Will there be
damage? There are 140 patients, 40 of them with damage, as in a study of lupus that found an area
under the curve of .74 with a trained network (Galvan 2016). Those patients are private; the
ones here are generated, by ``datasets.patient_visits``.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import RocCurveDisplay, roc_auc_score
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from reservoir import ESNSequenceClassifier
from reservoir.datasets import patient_visits

visits, damage = patient_visits(random_state=0)
fig, axes = plt.subplots(1, 3, figsize=(7, 2.6), sharey=True, layout="constrained")
for patient, ax in zip([3, 17, 25], axes, strict=True):
    age, index = visits[patient][:, 0], visits[patient][:, 3]
    ax.plot(age, index, "o-", ms=4)
    ax.set(xlabel="age in years", title="damage" if damage[patient] else "no damage")
axes[0].set_ylabel("index of activity")


# %%
# How long ago was a flare, by the calendar and not by the number of visits? With ``time_column``
# the state of a unit fades by the time between visits. Slow units whose last state is read keep a
# sum over years. As it comes, the classifier reads its states in many more ways, which are too
# many for so few patients. The rival is logistic regression on a summary of the visits.
def summary(patients):
    return [
        np.r_[
            p[:, 1:].mean(axis=0),
            p[:, 1:].std(axis=0),
            p[-1, 1:],
            len(p),
            np.ptp(p[:, 0]),
        ]
        for p in patients
    ]


def the_same(patients):
    return patients


slow = ESNSequenceClassifier(
    200,
    time_column=0,
    leak_rate=0.1,
    pool="last",
    spectral_radius=0.3,
    input_scaling=0.1,
    differences=False,
    bidirectional=False,
    random_state=0,
)
models = {
    "summary": (summary, make_pipeline(StandardScaler(), LogisticRegression(C=0.1))),
    "as it comes": (the_same, ESNSequenceClassifier(time_column=0, random_state=0)),
    "slow units": (the_same, slow),
}
scores = {name: np.empty(len(damage)) for name in models}
for train, test in StratifiedKFold(5, shuffle=True, random_state=0).split(
    visits, damage
):
    for name, (read, model) in models.items():
        model.fit(read([visits[i] for i in train]), damage[train])
        scores[name][test] = model.decision_function(read([visits[i] for i in test]))

# %%
fig, ax = plt.subplots(figsize=(4.5, 4), layout="constrained")
for (name, values), line in zip(scores.items(), ["--", ":", "-"], strict=True):
    RocCurveDisplay.from_predictions(
        damage, values, ax=ax, name=name, curve_kwargs={"linestyle": line}
    )
    print(f"{name}: area under the curve {roc_auc_score(damage, values):.2f}")
ax.plot([0, 1], [0, 1], color="grey", lw=0.8)
ax.set(xlabel="share of false alarms", ylabel="share of damage that is found")
plt.show()

# %%
# With so few patients a simple rival is hard to beat, and one cohort says little. In the mean of
# five, ``examples/benchmarks/visits.py``, slow units are ahead of the summary by two points, less
# than cohorts differ. There are trained networks, too.
