"""Generators of standard benchmark series, and a few small real series.

Series have shape (n_samples, n_features), even if there is a single variable; rows are time steps.
Tasks return (X, y) as in `sklearn.datasets`: X has two dimensions, and y has shape (n_samples,) for
one target or (n_samples, n_outputs) for several; `weather_and_load` also returns the dates.
`gestures`, `adding`, `multiplication`, `temporal_order` and `patient_visits` return a list of whole
sequences, and a label or a number for each; `bouncing_balls` and `spike_patterns` return
three-dimensional arrays.

`random_state` has two meanings. If the data are random (`narma`, `random_phase_sines`,
`sine_square`, `subsequence_detection`, `memory_capacity_input`, `gestures`, `adding`,
`multiplication`, `temporal_order`, `bouncing_balls`, `spike_patterns`, `crowd_density`, `song`,
`patient_visits`, `street_walks`, `weather_and_load`), new data are drawn at each call if it is
None. If the system is deterministic, None means that the series starts at the published point, so
that all calls return the same series; with a seed the start is displaced at random.
"""

from __future__ import annotations

from math import log

from reservoir.datasets._bouncing_balls import bouncing_balls
from reservoir.datasets._chaotic_maps import henon, logistic_map
from reservoir.datasets._crowd_density import crowd_density
from reservoir.datasets._fields import kuramoto_sivashinsky
from reservoir.datasets._flows import lorenz, lorenz96, roessler
from reservoir.datasets._gestures import gestures
from reservoir.datasets._long_memory import adding, multiplication, temporal_order
from reservoir.datasets._mackey_glass import mackey_glass
from reservoir.datasets._narma import narma
from reservoir.datasets._patient_visits import patient_visits
from reservoir.datasets._real import load_co2, load_el_nino, load_sunspots
from reservoir.datasets._signals import (
    memory_capacity_input,
    multiple_superposed_oscillators,
    random_phase_sines,
    sine_square,
    subsequence_detection,
)
from reservoir.datasets._song import song
from reservoir.datasets._spike_patterns import spike_patterns
from reservoir.datasets._street_walks import street_walks
from reservoir.datasets._weather import weather_and_load

__all__ = [
    "LYAPUNOV_TIME",
    "adding",
    "bouncing_balls",
    "crowd_density",
    "gestures",
    "henon",
    "kuramoto_sivashinsky",
    "load_co2",
    "load_el_nino",
    "load_sunspots",
    "logistic_map",
    "lorenz",
    "lorenz96",
    "mackey_glass",
    "memory_capacity_input",
    "multiple_superposed_oscillators",
    "multiplication",
    "narma",
    "patient_visits",
    "random_phase_sines",
    "roessler",
    "sine_square",
    "song",
    "spike_patterns",
    "street_walks",
    "subsequence_detection",
    "temporal_order",
    "weather_and_load",
]

#: Reciprocal of the largest Lyapunov exponent of each chaotic system at its default parameters, in
#: time units of the system (steps for the maps); the functions' docstrings state the sources. For
#: use with `reservoir.metrics.valid_time`.
LYAPUNOV_TIME: dict[str, float] = {
    "mackey_glass": 1.0 / 0.0051,
    "lorenz": 1.0 / 0.9056,
    "lorenz96": 1.0 / 1.67,
    "kuramoto_sivashinsky": 1.0 / 0.048,
    "roessler": 1.0 / 0.0714,
    "henon": 1.0 / 0.41922,
    "logistic_map": 1.0 / log(2.0),
}
