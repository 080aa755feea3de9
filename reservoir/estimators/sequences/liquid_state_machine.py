"""Features of whole sequences, computed by a network of spiking units."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, TypeVar

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from reservoir._saving import saved
from reservoir._tables import Sequences, read_whole_series
from reservoir._typing import Array
from reservoir._validation import as_generator, as_plain, check_count, check_number
from reservoir.dynamics import Pooling
from reservoir.dynamics.pooling import POOLS, check_pools
from reservoir.dynamics.spiking import SpikingNetwork, draw_spiking_network
from reservoir.estimators.describe import Described
from reservoir.estimators.parameters import (
    check_parameters,
    documented,
    parameter,
    read_dtype,
    shared,
)
from reservoir.estimators.reporting import restored_on_error

__all__ = ["LiquidStateMachine"]

_Self = TypeVar("_Self", bound="LiquidStateMachine")
_BATCH_STEPS = 2**14  # total steps of the series that run in parallel, unless it is one
_share = partial(check_number, low=0.0, high=1.0)
_factor = partial(check_number, low=0.0)
_time = partial(check_number, low=0.0, low_open=True)


def _check_pools(name: str, value: Any) -> None:
    if any(POOLS[each].needs_thresholds for each in check_pools(name, value)):
        raise ValueError(
            f'{name}={value!r}: "quantiles" is for states that vary at every step; filtered '
            'spikes are 0 most of the time. Use "last", "mean", "std", "max" or "min".'
        )


def _check_refractory(name: str, value: Any) -> None:
    if not isinstance(value, (tuple, list)) or len(value) != 2:
        raise ValueError(
            f"{name}={value!r} must be a pair of steps, for units that excite and units that "
            "inhibit, such as (3, 2)."
        )
    for each in value:
        check_count(name, each, minimum=0)


@saved
@documented()
@dataclass(eq=False, repr=False)
class LiquidStateMachine(Described, TransformerMixin, BaseEstimator):
    """Turn each sequence into one row of features: filtered spikes of a fixed spiking network.

    Leaky integrate-and-fire units, four in five of which excite others while one in five inhibits,
    are arranged in a column of 3 x 3 x n points; nearby units are connected more often. A sequence
    of spikes, or of currents, drives them from rest; their spikes pass through an exponential
    filter, and statistics of the result form one row of features for a linear model.

    Parameters
    ----------
    {PARAMETERS}

    Attributes
    ----------
    network_ : reservoir.dynamics.spiking.SpikingNetwork
        The network. Its weights `W` and `W_in` are sparse and in units of the firing threshold; row
        i contains the weights of the connections to unit i.
    n_channels_ : int
        Number of channels.
    n_features_in_ : int
        Number of channels; for a 2-D X, with one series per row, the number of steps.
    feature_names_in_ : array of shape (n_features_in_,)
        Names of the columns of X; only if X had names.

    See Also
    --------
    ReservoirFeatures : The same with units that do not spike; about equally accurate where the two
        were compared (gallery page "Spikes").

    Notes
    -----
    Units, probabilities of connections, the ratio of their strengths and time constants are taken
    from [1]_, with a step of 1 ms. The synapses differ: here they have no short-term depression or
    facilitation, one time constant, and a delay of one step. Inputs are not scaled: a spike is an
    input of 1 in one step, and a constant current has ``1 / (1 - exp(-1 / synapse_time))`` times
    the effect of the same current in a single step. If all features are 0, no unit fired: increase
    `input_scaling`.

    References
    ----------
    .. [1] Maass, Natschlaeger and Markram (2002), "Real-time computing without stable states: a new
       framework for neural computation based on perturbations", Neural Computation 14, 2531-2560.

    Examples
    --------
    >>> from sklearn.linear_model import RidgeClassifierCV
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from reservoir import LiquidStateMachine
    >>> from reservoir.datasets import spike_patterns
    >>> X, y = spike_patterns(120, jitter=1, random_state=0)
    >>> machine = LiquidStateMachine(random_state=0)
    >>> pipe = make_pipeline(machine, StandardScaler(), RidgeClassifierCV())
    >>> bool(pipe.fit(X[:80], y[:80]).score(X[80:], y[80:]) > 0.9)
    True
    """

    n_units: int = parameter(
        135,
        "int",
        "Number of units; 135 fill a column of 3 x 3 x 15 points, as in [1]_.",
        check_count,
    )
    _: KW_ONLY
    inhibitory: float = parameter(
        0.2, "float in [0, 1]", "Share of the units that inhibit, chosen at random.", _share
    )
    connection_length: float = parameter(
        2.0,
        "float > 0, points of the grid",
        """Typical length of the connections: units at a distance D are connected with probability C
        exp(-(D / length)^2), where C is .3 from excitatory to excitatory units, .2 from excitatory
        to inhibitory, .4 from inhibitory to excitatory, and .1 between inhibitory units.""",
        _time,
    )
    recurrent_scaling: float = parameter(
        0.1,
        "float >= 0",
        """Factor of all connection strengths within the network; 0 removes all connections. 1 gives
        the mean strengths of [1]_, where short-term depression limits activity; without depression,
        most networks with a factor of .3 or more keep firing without input once they have
        begun.""",
        _factor,
    )
    input_scaling: float = parameter(
        2.0,
        "float >= 0",
        """Factor of the strengths of inputs; 1 gives the mean strengths of [1]_. At 1 a single
        spike makes about a third of the units that receive it fire, and at 2 about three in
        five.""",
        _factor,
    )
    input_density: float = parameter(
        0.3,
        "float in [0, 1]",
        "Share of the units that receive a channel, chosen at random.",
        _share,
    )
    membrane_time: float = parameter(
        30.0, "float > 0, steps", "Time constant of the voltages.", _time
    )
    synapse_time: float = parameter(
        3.0, "float > 0, steps", "Time constant of the synaptic currents.", _time
    )
    refractory_time: tuple[int, int] = parameter(
        (3, 2),
        "(int, int), steps",
        "Refractory period after a spike, of units that excite and of units that inhibit.",
        _check_refractory,
    )
    filter_time: float = parameter(
        30.0,
        "float > 0, steps",
        "Time constant of the filter of the spikes, and so of the memory of the features.",
        _time,
    )
    pool: Any = parameter(
        ("last", "mean"),
        "str or tuple of str",
        """Statistics of the filtered spikes of a series, computed for each unit: "last" (after the
        last step, the input of the readouts in [1]_), "mean", "std", "max", "min". "last" alone
        reflects little more than the last `filter_time` steps.""",
        _check_pools,
    )
    sequence_column: Any = shared.sequence_column
    dtype: Any = shared.but(
        "dtype",
        text="""Precision of the features. Voltages are always float64, since rounding may decide
        whether a unit fires.""",
    )
    random_state: Any = shared.but("random_state", text="Seed of all connections.")

    def _description(self) -> dict[str, str]:
        network = self.network_
        sends = (
            f"{network.W.nnz} synapses, {round(self.inhibitory * network.n_units)} units inhibit"
        )
        features = f"{len(self.get_feature_names_out())} for each sequence"
        channels = f"{features}, from {self.n_channels_} channels"
        return {"Network": f"{network.n_units} spiking units, {sends}", "Features": channels}

    def fit(self: _Self, X: Any, y: Any = None) -> _Self:
        """Draw the network for the channels of X; the values of X are not used.

        Parameters
        ----------
        X : list, 3-D array, 2-D array, or table
            A list of arrays or DataFrames of shape (n_steps, n_channels), whose lengths may
            differ; an array of shape (n_sequences, n_steps, n_channels); a table with an id column
            (`sequence_column`) or a MultiIndex whose last level is time; a 2-D array of one series
            of one channel per row.
        y : ignored

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            If X cannot be read, or a parameter is invalid.
        """
        with restored_on_error(self):
            sequences = self._read(X, None)
            check_parameters(self)
            self._fixed = self._kept(new=True)
            self._container = sequences.container
            self.n_channels_ = sequences.arrays[0].shape[1]
            self.network_: SpikingNetwork = draw_spiking_network(
                check_count("n_units", self.n_units, size=60),
                self.n_channels_,
                as_generator(self.random_state),
                inhibitory=self.inhibitory,
                connection_length=self.connection_length,
                recurrent_scaling=self.recurrent_scaling,
                input_scaling=self.input_scaling,
                input_density=self.input_density,
                refractory=(self.refractory_time[0], self.refractory_time[1]),
                membrane_time=float(self.membrane_time),
                synapse_time=float(self.synapse_time),
            )
            self._pooling = Pooling(check_pools("pool", self.pool))
        return self

    def _memory_advice(self) -> str:
        """Return which parameters to change where memory fails."""
        return f"Lower n_units={self.n_units}, or connection_length, to have fewer connections."

    def transform(self, X: Any) -> Array:
        """Return the features of sequences.

        Parameters
        ----------
        X : list, 3-D array, 2-D array, or table
            As in `fit`.

        Returns
        -------
        array of shape (n_sequences, n_features)
            The columns are named by `get_feature_names_out`.
        """
        rows = []
        for spikes in self.spikes(X):
            states = self.filtered(spikes)
            pools = [POOLS[name](self.network_.n_units, None) for name in self._pooling.names]
            for pool in pools:
                pool.add(states)
            rows.append(np.concatenate([np.ravel(pool.result()) for pool in pools]))
        return np.array(rows, dtype=self._kept()[1])

    def spikes(self, X: Any) -> list[Array]:
        """Return the spikes of each unit, for plots and for custom readouts.

        Parameters
        ----------
        X : list, 3-D array, 2-D array, or table
            As in `fit`.

        Returns
        -------
        list of bool arrays of shape (n_steps_i, n_units)
            True where a unit fires.
        """
        check_is_fitted(self)
        sequences = self._read(X, (self._container, self.n_channels_))
        many = max(1, _BATCH_STEPS // max(sequences.lengths))
        spikes: list[Array] = []
        for begin in range(0, len(sequences), many):
            arrays = sequences.arrays[begin : begin + many]
            longest = max(len(rows) for rows in arrays)
            padded = np.zeros((len(arrays), longest, self.n_channels_))
            for place, rows in zip(padded, arrays, strict=True):
                place[: len(rows)] = rows
            fired = self.network_.spikes(padded)
            spikes += [each[: len(rows)] for each, rows in zip(fired, arrays, strict=True)]
        return spikes

    def filtered(self, spikes: Array) -> Array:
        """Return exponentially filtered spikes: one row of states per step.

        Parameters
        ----------
        spikes : array of shape (n_steps, n_units)
            Spikes of one series, as returned by `spikes`.

        Returns
        -------
        array of shape (n_steps, n_units)
            ``r(t) = exp(-1 / filter_time) r(t-1) + s(t)``
        """
        from scipy.signal import lfilter  # a tenth of a second, which `import reservoir` saves

        _, dtype, filter_time = self._kept()
        kept = np.exp(-1.0 / filter_time)
        return np.asarray(
            lfilter([1.0], [1.0, -kept], as_plain("spikes", spikes, float), axis=0), dtype
        )

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Return the names of the features, such as "last_unit0".

        Parameters
        ----------
        input_features : sequence of str, optional
            Names of the columns of X, which are compared with those of fit.

        Returns
        -------
        array of str
        """
        check_is_fitted(self)
        _check_feature_names_in(self, input_features, generate_names=False)
        return np.array(self._pooling.labels(self.network_.n_units), dtype=object)

    def _read(self, X: Any, fitted: tuple[str, int] | None) -> Sequences:
        column = self._kept(new=fitted is None)[0]
        return read_whole_series(self, X, sequence_column=column, fitted=fitted)

    def _kept(self, *, new: bool = False) -> tuple[Any, str, float]:
        """Return the column of ids, the dtype and the filter's time, as in fit unless `new`."""
        now = self.sequence_column, read_dtype(self.dtype).name, float(self.filter_time)
        return now if new else getattr(self, "_fixed", now)  # absent from older files

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.transformer_tags.preserves_dtype = []  # determined by the parameter dtype, not by X
        return tags
