import numpy as np
import pyarrow as pa
import pytest

from bfreplay.datasets.arrow_columns import as_arrow

TIME = pa.timestamp("us", tz="UTC")


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1, None, 3], pa.int32()),
        ([], pa.int64()),
        ([1.5, None, float("inf")], pa.float64()),
        (np.array([1.5, -2.0, np.inf]), pa.float64()),
        ([True, None, False] * 7, pa.bool_()),
        ([0, None, 1_600_000_000_000_000], TIME),
        (["a", None, "", "ü"], pa.string()),
        (["b", None, "a", "b"], pa.dictionary(pa.int16(), pa.string())),
        (["a", "a"], pa.dictionary(pa.int16(), pa.string())),
        *(([None] * 3, kind) for kind in (pa.int64(), pa.string(), pa.list_(pa.int32()), TIME)),
        ([None] * 3, pa.dictionary(pa.int16(), pa.string())),
        ([[1, 2], [], np.array([3])], pa.list_(pa.int32())),
        (np.arange(5, dtype=np.int8), pa.int8()),
    ],
)
def test_an_arrow_array_is_that_which_pyarrow_makes(values, kind):
    made = as_arrow(values, kind)
    made.validate(full=True)
    assert made.equals(pa.array(values, kind))


def test_nan_in_an_array_is_null():
    assert as_arrow(np.array([1.5, np.nan]), pa.float64()).equals(pa.array([1.5, None]))
