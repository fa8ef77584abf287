"""Options of experiments beside those of their runs."""

import pytest

from bfreplay.errors import InputError
from bfreplay.experiments import LabSettings
from bfreplay.experiments.study_options import Bootstrap, FinishOptions, TuningOptions


@pytest.mark.parametrize("tolerance", [-0.1, 1, float("nan"), "much"])
def test_a_tolerance_is_a_share(tolerance):
    with pytest.raises(InputError, match="tolerance"):
        TuningOptions(tolerance=tolerance)


@pytest.mark.parametrize(
    ("make", "option"),
    [
        (lambda: FinishOptions(starts=0), "starts"),
        (lambda: FinishOptions(dedicated=1.5), "dedicated"),
        (lambda: TuningOptions(train=0), "train"),
        (lambda: Bootstrap(resamples=99), "resamples"),
        (lambda: LabSettings(sample=0), "sample"),
    ],
)
def test_numbers_out_of_range_are_refused(make, option):
    with pytest.raises(InputError) as caught:
        make()
    assert caught.value.column == option


def test_a_number_of_dedicated_nodes_may_be_left_out():
    assert FinishOptions().dedicated is None
