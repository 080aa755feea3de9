"""The class of the module that `to_torch` returns; imported only inside functions.

The class is defined at module level so that `torch.save` can pickle it.
"""

from __future__ import annotations

from typing import Any

import torch

#: The activations of `LeakyLayer`, by their names in this package.
ACTIVATIONS = {
    "tanh": torch.tanh,
    "logistic": torch.sigmoid,
    "relu": torch.relu,
    "leaky_relu": torch.nn.functional.leaky_relu,
    "softplus": torch.nn.functional.softplus,
    "identity": torch.nn.Identity(),
}


class LeakyLayer(torch.nn.Module):
    """Recurrent layer with leaks: ``h = (1 - a) h + a f(W h + W_in x + bias)``.

    The leak rates a, one per unit, are not trained. `n_features` does not count the column of
    times, whose index is `place` (in units of steps; None if all steps have length 1).
    """

    def __init__(
        self, n_features: int, n_units: int, leak: Any, activation: str, place: int | None
    ) -> None:
        super().__init__()
        self.activation, self.place = activation, place
        empty = torch.nn.Parameter
        self.weight_ih_l0 = empty(leak.new_zeros(n_units, n_features))
        self.weight_hh_l0 = empty(leak.new_zeros(n_units, n_units))
        self.bias_ih_l0 = empty(leak.new_zeros(n_units))
        self.register_buffer("leak", leak)

    def forward(self, X: Any) -> Any:
        """Return the states (batch, time, n_units) from state 0, and the last state."""
        share = self.leak.expand(*X.shape[:2], -1)
        if self.place is not None:
            times = X[..., self.place]
            steps = torch.diff(times, dim=1, prepend=times[:, :1] - 1)
            share = 1 - (1 - self.leak) ** steps[..., None]
            X = without(X, self.place)
        into = X @ self.weight_ih_l0.T + self.bias_ih_l0
        f, h = ACTIVATIONS[self.activation], into.new_zeros(len(X), len(self.bias_ih_l0))
        states = []
        for t in range(X.shape[1]):
            h = h + share[:, t] * (f(into[:, t] + h @ self.weight_hh_l0.T) - h)
            states.append(h)
        return torch.stack(states, dim=1), h


class Stack(torch.nn.Module):
    """Layers, each of which receives the states of the layer below.

    With input shortcuts, every layer also receives the inputs. With readout shortcuts, the states
    of all layers are returned instead of those of the topmost one.
    """

    def __init__(self, layers: Any, input_shortcuts: bool, readout_shortcuts: bool) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList(layers)
        self.input_shortcuts, self.readout_shortcuts = input_shortcuts, readout_shortcuts

    def forward(self, X: Any) -> Any:
        """Return the states (batch, time, width) from state 0, and None."""
        read, found = X, []
        for layer in self.layers:
            found.append(layer(read)[0])
            read = torch.cat([found[-1], X], dim=-1) if self.input_shortcuts else found[-1]
        return (torch.cat(found, dim=-1) if self.readout_shortcuts else found[-1]), None


class BothDirections(torch.nn.Module):
    """Two layers that run over sequences of equal length in opposite directions."""

    def __init__(self, ahead: Any, back: Any) -> None:
        super().__init__()
        self.ahead, self.back = ahead, back

    def forward(self, X: Any) -> Any:
        """Return the states (batch, time, width), and None."""
        turned = self.back(X.flip(1))[0].flip(1)
        return torch.cat([self.ahead(X)[0], turned], dim=-1), None


def without(X: Any, place: int | None) -> Any:
    """Return inputs without the column of times, if there is one."""
    if place is None:
        return X
    return torch.cat([X[..., :place], X[..., place + 1 :]], dim=-1)


class RecurrentModule(torch.nn.Module):
    """Torch module of a recurrent part (batch first), a linear readout, and an output function.

    With `include_input`, the readout receives [states, inputs]. `from_torch` reads `loss`.
    """

    def __init__(
        self, recurrent: Any, readout: Any, output: Any, include_input: bool, loss: str
    ) -> None:
        super().__init__()
        self.recurrent = recurrent
        self.readout = readout
        self.output = output
        self.include_input = include_input
        self.loss = loss

    def forward(self, X: Any) -> Any:
        """Return outputs (batch, time, n_outputs) for inputs (batch, time, n_features)."""
        states, _ = self.recurrent(X)
        if self.include_input:
            place = getattr(self.recurrent, "place", None)
            states = torch.cat([states, without(X, place)], dim=-1)
        return self.output(self.readout(states))
