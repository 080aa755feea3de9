"""Which networks, which penalties and which score, for the series at hand; and the choice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from reservoir._typing import Array
from reservoir.loops.loop_design import LoopDesign, Trajectories
from reservoir.loops.network_plan import NetworkPlan
from reservoir.loops.network_trial import Clip, Member, NetworkTrial

# (radius, input scaling, bias[, leak]): chosen greedily out of 25 networks ...
CLEAN = [(.05,.3,1.),(0.,.1,.5),(0.,1.5,.5),(0.,.2,1.),(.05,.1,.5),(0.,.4,.5),(.8,.3,1.),(.4,.8,1.)]
NOISY = [(r,s,b) for r in (.05,.4,.8) for s,b in ((.1,.5),(.3,1.),(.8,1.))]+[(.3,.3,1.,.5),(.8,.3,1.,.3),(.05,.3,2.)]
FULL_PENALTIES = np.array([1e-3,1e-6,1e-9,1e-12,1e-16,1e-20,1e-25])
PARTIAL_PENALTIES = np.array([1e-2,1e-4,1e-6,1e-8,1e-10,1e-12,1e-15,1e-18])
NOISY_PENALTIES = np.array([1e-1,1e-2,1e-3,1e-4,1e-5,1e-6,1e-8,1e-10])


@dataclass
class Recipe_:
    plans: list
    alphas: Array
    low: float
    left_out: bool
    seeds: bool      # a committee of the winner's seeds; else of the best networks
    n_units: int = 150
    n_final: int | None = None


def plans_of(specs, n_units, augment, **lags):
    return [NetworkPlan(n_units, s[0], s[1], s[2], s[3] if len(s) > 3 else 1.0, augment, **lags) for s in specs]


def recipe_for(T, D, kind):
    short = T < 1500
    N = 150 if short else 300
    N = min(N, max(10, int(.3 * T)))
    aug = "square" if short else None
    if kind == "clean":
        return Recipe_(plans_of(CLEAN, N, aug), FULL_PENALTIES, -9.0, False, True)
    if kind == "noisy":
        return Recipe_(plans_of(NOISY, N if short else 200, aug), NOISY_PENALTIES, -1.0, True, False)
    M = [(.05,.3,1.),(.4,.6,1.),(.4,.3,1.),(.05,.8,1.)]
    plans = plans_of(NOISY, N, aug) + plans_of(NOISY, 80, aug) + plans_of(M, N, aug, n_lags=2) + plans_of(M, N, aug, n_lags=3, skip=2)
    return Recipe_(plans, PARTIAL_PENALTIES, -2.0, False, False)


def design_for(data, recipe, n_starts=8):
    T = data.n_rows
    short = T < 1500
    past = max((p.n_lags - 1) * p.skip for p in recipe.plans)
    L = int(np.clip(T // 5, 5, 100 if short else 150))
    return LoopDesign.of([len(x) for x in data.levels], washout=max(20 if short else 50, past), n_steps=L,
        n_starts=n_starts, n_blocks=4 if recipe.left_out else 1, n_starts_per_block=6)


def score(trial, clip, recipe, low=None):
    low = recipe.low if low is None else low
    s = np.maximum(trial.recycled_errors(clip), low).mean((0, 2))
    if recipe.left_out:
        s = s + np.mean([np.maximum(e, low).mean((0, 2)) for e in trial.left_out_errors(clip)], axis=0)
    return s


def limits(data):
    every = np.concatenate(data.levels)
    lo, hi = every.min(0), every.max(0)
    return lo - (hi - lo), hi + (hi - lo)


def search(data, recipe, seed=0, n_networks=3):
    clip = limits(data)
    design = design_for(data, recipe)
    trials, scores = [], []
    for k, plan in enumerate(recipe.plans):
        t = NetworkTrial(plan, seed + k, data, design, recipe.alphas, leave_out=recipe.left_out)
        trials.append(t); scores.append(score(t, clip, recipe))
    S = np.array(scores)
    order = np.argsort(S.min(1))
    if recipe.seeds:
        w = order[0]
        members = [trials[w].member(int(S[w].argmin()))]
        for j in range(1, n_networks):
            t = NetworkTrial(recipe.plans[w], seed + 1000 * j + w, data, design, recipe.alphas, leave_out=recipe.left_out)
            members.append(t.member(int(score(t, clip, recipe).argmin())))
    else:
        members = [trials[k].member(int(S[k].argmin())) for k in order[:n_networks]]
    return members, S, trials
