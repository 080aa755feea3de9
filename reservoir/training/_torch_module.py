"""The class of the module that `to_torch` returns; imported only inside functions.

The class is defined at module level so that `torch.save` can pickle it.
"""

from __future__ import annotations

from typing import Any

import torch


class RecurrentModule(torch.nn.Module):
    """Torch module with a recurrent layer, a linear readout, and an output function.

    Parameters
    ----------
    recurrent : torch.nn.RNN, torch.nn.LSTM or torch.nn.GRU, batch first
    readout : torch.nn.Linear
    output : torch.nn.Module
    include_input : bool
        Whether the readout uses [states, inputs] instead of only the states.
    loss : str
        The loss of the network, which is stored for `from_torch`.
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
            states = torch.cat([states, X], dim=-1)
        return self.output(self.readout(states))
