"""Contract tests: what a formulation, a back end or a policy must do to be used by bfreplay, as classes to inherit.

In a test file of your own, with pytest:

.. code-block:: python

    from bfreplay.testing import FormulationContract
    from mine import Mine

    class TestMine(FormulationContract):
        formulation = Mine

Everything that bfreplay ships inherits the same.
"""

import pytest

for _module in ("backend", "formulation", "policy"):  # so that a failing assertion shows its values
    pytest.register_assert_rewrite(f"bfreplay.testing.{_module}")

from bfreplay.testing.backend import BackendContract  # noqa: E402
from bfreplay.testing.formulation import FormulationContract  # noqa: E402
from bfreplay.testing.policy import PolicyContract  # noqa: E402

__all__ = ["BackendContract", "FormulationContract", "PolicyContract"]
