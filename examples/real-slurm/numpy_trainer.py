"""Trainer that really trains a small model with numpy; the time of a step follows a scalability curve.

n ranks together make rate * n / (1 + serial * (n - 1) + kappa * n * (n - 1)) samples/s: each step lasts as long as the
curve says, by sleeping. README.md says how a trainer is started.
"""

from typing import Any

import ranks

INPUTS, HIDDEN, SEED = 16, 32, 48


def initial() -> Any:
    """Return the parameters of a network with one hidden layer, as one vector of float32."""
    import numpy as np

    return np.random.default_rng(SEED).normal(0, 0.3, INPUTS * HIDDEN + HIDDEN).astype("f4")


def data(first: int, count: int) -> Any:
    """Return inputs and targets of the samples first, first + 1, ...: a sample is the same in every run."""
    import numpy as np

    counter = np.random.Philox(key=SEED, counter=first * INPUTS // 4)  # four numbers for each count
    inputs = np.random.Generator(counter).uniform(-1, 1, (count, INPUTS)).astype("f4")
    return inputs, np.sin(inputs[:, :4].sum(1))


def prepare(batch: int) -> tuple[Any, Any]:
    """Return the initial parameters and the gradient as a function of parameters and first sample."""
    import numpy as np  # here: the rank listens to its agent before it imports anything slow

    def gradient(parameters: Any, first: int) -> Any:
        inputs, targets = data(first, batch)
        hidden_weights = parameters[: INPUTS * HIDDEN].reshape(INPUTS, HIDDEN)
        out_weights = parameters[INPUTS * HIDDEN :]
        hidden = np.tanh(inputs @ hidden_weights)
        error = hidden @ out_weights - targets
        back = 2 * error / batch
        of_hidden = inputs.T @ (back[:, None] * out_weights * (1 - hidden**2))
        return np.concatenate([of_hidden.ravel(), hidden.T @ back, [np.mean(error**2)]]).astype("f4")

    return initial(), gradient


if __name__ == "__main__":
    ranks.main(__doc__, prepare, rate=600.0)
