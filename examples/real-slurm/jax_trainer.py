"""Trainer with JAX on the CPU: the model of numpy_trainer; import, compilation and steps cost what they cost.

With --rate, --serial and --kappa a step is made to last as long as the curve says, as in numpy_trainer.
"""

from typing import Any

import numpy_trainer
import ranks


def prepare(batch: int) -> tuple[Any, Any]:
    """Return the initial parameters and the compiled gradient as a function of parameters and first sample."""
    import jax  # here: the rank listens to its agent before it imports anything slow
    import numpy as np

    inputs_hidden = numpy_trainer.INPUTS * numpy_trainer.HIDDEN

    def loss(parameters: Any, inputs: Any, targets: Any) -> Any:
        hidden_weights = parameters[:inputs_hidden].reshape(numpy_trainer.INPUTS, numpy_trainer.HIDDEN)
        hidden = jax.numpy.tanh(inputs @ hidden_weights)
        return jax.numpy.mean((hidden @ parameters[inputs_hidden:] - targets) ** 2)

    compiled = jax.jit(jax.value_and_grad(loss))

    def gradient(parameters: Any, first: int) -> Any:
        value, vector = compiled(parameters, *numpy_trainer.data(first, batch))
        return np.append(np.asarray(vector), np.float32(value))

    parameters = numpy_trainer.initial()
    gradient(parameters, 0)  # compiles
    return parameters, gradient


if __name__ == "__main__":
    ranks.main(__doc__, prepare)
