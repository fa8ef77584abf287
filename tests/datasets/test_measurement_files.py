"""Tables of measured rates."""

from __future__ import annotations

import pandas as pd
import pytest

from bfreplay.datasets.jobs.measurements import load_measurements
from bfreplay.errors import InputError


def written(folder, text):
    file = folder / "measured.csv"
    file.write_text(text)
    return file


def test_a_plain_table_is_one_curve_named_after_the_file(tmp_path):
    measured = load_measurements(written(tmp_path, "nodes,samples_per_s\n2,19\n1,10\n2,21\n"))
    assert list(measured) == ["measured"]
    assert measured["measured"].nodes == (1, 2, 2)
    assert measured["measured"].rates == (10.0, 19.0, 21.0)


def test_several_curves_stand_in_one_table_and_parquet_may_hold_numbers(tmp_path):
    frame = pd.DataFrame(
        {"curve": ["b", "b", "a", "a"], "nodes": [1, 2, 1, 4], "samples_per_s": [1.5, 2.5, 3, 9], "repeat": [1] * 4}
    )
    frame.to_parquet(tmp_path / "m.parquet")
    measured = load_measurements(tmp_path / "m.parquet")
    assert {name: each.nodes for name, each in measured.items()} == {"b": (1, 2), "a": (1, 4)}
    assert list(measured) == ["b", "a"]


@pytest.mark.parametrize(
    ("text", "says", "row", "column", "value"),
    [
        ("nodes,samples_per_s\n1,10\n2,-3\n", "no rate", 2, "samples_per_s", -3.0),
        ("nodes,samples_per_s\n1,10\n2,0\n", "no rate", 2, "samples_per_s", 0.0),
        ("nodes,samples_per_s\n1,nan\n2,3\n", "no rate", 1, "samples_per_s", None),
        ("nodes,samples_per_s\n1,10\n2.5,3\n", "no node count", 2, "nodes", 2.5),
        ("nodes,samples_per_s\n0,10\n2,3\n", "no node count", 1, "nodes", 0.0),
        ("nodes,samples_per_s\n1,10\n2,fast\n", "not a number", 2, "samples_per_s", "fast"),
        ("nodes,samples_per_s\n1,10\n2,\n", "is empty here", 2, "samples_per_s", None),
        ("nodes,samples_per_s\n4,10\n4,11\n", "too few node counts", "1 to 2", "nodes", [4]),
        ("nodes,samples_per_s,repeat\n1,10,1\n1,11,1\n2,9,1\n", "the same repeat", 2, "repeat", "1"),
        ("nodes,samples_per_s,curve\n1,10,a:b\n2,11,a:b\n", "colon or a parenthesis", 1, "curve", "a:b"),
    ],
)
def test_a_faulty_row_is_named_with_column_and_value(tmp_path, text, says, row, column, value):
    with pytest.raises(InputError, match=says) as caught:
        load_measurements(written(tmp_path, text))
    error = caught.value
    assert (error.row, error.column) == (row, column)
    assert error.file.endswith("measured.csv")
    if value is not None:
        assert error.value == value


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("nodes,sampels_per_s\n1,2\n", "'sampels_per_s' is unknown[\\s\\S]*did you mean 'samples_per_s'"),
        ("nods,samples_per_s\n1,2\n", "'nods' is unknown[\\s\\S]*did you mean 'nodes'"),
        ("nodes,samples_per_s,repeats\n1,2,3\n", "'repeats' is unknown[\\s\\S]*did you mean 'repeat'"),
        ("nodes,samples_per_s,loss\n1,2,3\n", "'loss' is unknown[\\s\\S]*drop others"),
        ("nodes,samples_per_s,gpu\n1,2,3\n", "several columns hold node counts: nodes, gpu"),
        ("nodes,img/s,step_s\n1,2,3\n", "several columns hold rates: img/s, step_s"),
        ("n,rate\n1,2\n", "'nodes' and 'samples_per_s' are missing, and 'n' and 'rate' are unknown"),
        ("nodes,step_time\n1,2\n", "'samples_per_s' is missing[\\s\\S]*and its unit .step_time_ms"),
        ("nodes,step_s,batch_size\n1,2,3\n", "'batch_size' is unknown[\\s\\S]*batch_per_gpu or global_batch"),
        ("rate,gpus_in_use\n1,2\n", "name each column by what it holds and its unit"),
        ("nodes,samples_per_s,repeat\n1,2,1\n1,3,1\n2,4,1\n", "two measurements at 1 node are"),
        ("nodes\n1\n", "'samples_per_s' is missing"),
        ("curve,nodes,value\na,1,2\n", "looks like a table of curves"),
        ("nodes,samples_per_s\n", "no measurements"),
        ("nodes;samples_per_s\n1;2\n", "separated by ';'"),
    ],
)
def test_a_faulty_table_is_refused(tmp_path, text, says):
    with pytest.raises(InputError, match=says):
        load_measurements(written(tmp_path, text))


def test_toml_holds_no_measurements(tmp_path):
    (tmp_path / "m.toml").write_text("")
    with pytest.raises(InputError, match="no reader"):
        load_measurements(tmp_path / "m.toml")
