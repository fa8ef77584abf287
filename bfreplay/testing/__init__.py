"""Contract tests for plug-ins, as classes to inherit.

One class each for formulations, back ends, policies, objectives and job sources.

In a test file of your own, with pytest:

.. code-block:: python

    from bfreplay.testing import FormulationContract
    from mine import Mine

    class TestMine(FormulationContract):
        formulation = Mine

All plug-ins that bfreplay ships inherit them too.
"""

try:
    import pytest
except ModuleNotFoundError as error:
    raise ModuleNotFoundError("the contracts are tests for pytest, which is not here: pip install pytest") from error

# so that a failing assertion shows its values
for _module in ("milp", "job_source", "objective", "policy", "replays"):
    pytest.register_assert_rewrite(f"bfreplay.testing.{_module}")

from bfreplay.testing.job_source import JobSourceContract  # noqa: E402
from bfreplay.testing.milp import BackendContract, FormulationContract  # noqa: E402
from bfreplay.testing.objective import ObjectiveContract  # noqa: E402
from bfreplay.testing.policy import PolicyContract  # noqa: E402

__all__ = ["BackendContract", "FormulationContract", "JobSourceContract", "ObjectiveContract", "PolicyContract"]
