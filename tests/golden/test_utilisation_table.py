"""The efficiency U of BFTrainer on the whole Summit log, for 36 combinations of jobs, parallelism and T_fwd."""

from __future__ import annotations

import pytest

from bfreplay.experiments.parity.bftrainer import T_FWD_S, U, utilisation

# every row and every column once; the others in `make test-all`
CELLS = [
    pytest.param(*row, t_fwd_s, marks=() if across == down else pytest.mark.thorough)
    for down, row in enumerate(U)
    for across, t_fwd_s in enumerate(T_FWD_S)
]


@pytest.mark.parametrize(("job_set", "max_parallel", "t_fwd_s"), CELLS)
def test_u_on_the_summit_log(shared, job_set, max_parallel, t_fwd_s):
    result = utilisation(shared, job_set, max_parallel, t_fwd_s)
    assert result.summary["equivalent_nodes"] == pytest.approx(392, abs=0.5)
    # the table has three digits, and ours differ from them by one in the last at most
    assert abs(round(1000 * result.u) - round(1000 * U[job_set, max_parallel][T_FWD_S.index(t_fwd_s)])) <= 1
    unproven = set(result.summary["decisions"]) - {"proven", "proven_trivially", "unproven_by_design"}
    assert not unproven
