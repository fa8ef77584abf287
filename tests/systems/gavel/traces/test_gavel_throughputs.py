import csv
import gzip
import json

import pytest

from bfreplay.errors import InputError
from bfreplay.systems.gavel.throughputs import read_throughputs
from tests.systems.gavel.traces.small_table import SMALL, published, small_table, table_file


def test_rates_are_found_by_job_type_gang_and_node_type(tmp_path):
    table = small_table(tmp_path)
    assert table.tables == ("v100", "k80", "v100_unconsolidated")
    assert table.node_types == ("k80", "v100")
    assert table.job_types == ("LM", "CPU only", "A3C")
    assert table.gangs("LM") == (1, 2, 4)
    assert table.rate("LM", 4, "v100") == 20.0
    assert table.rate("LM", 2, "v100_unconsolidated") == 12.0
    assert [table.rate("LM", 2, "k80"), table.rate("LM", 8, "v100"), table.rate("LM", 1, "p100")] == [0.0, 0.0, 0.0]
    assert table.runs_on("LM", 2) == ("v100",)
    assert table.runs_on("LM", 1) == ("k80", "v100")


def test_durations_refer_to_v100_or_else_to_the_first_type_that_a_job_runs_on(tmp_path):
    table = small_table(tmp_path)
    assert table.reference("LM", 1) == "v100"
    assert table.reference("CPU only", 1) == "k80"
    with pytest.raises(InputError, match="no rate of 'LM' on 8 nodes") as caught:
        table.reference("LM", 8)
    assert "'LM' on 1, 2, 4 nodes" in caught.value.expected
    with pytest.raises(InputError, match=r"no rate of 'BERT' on 1 node\n"):
        table.reference("BERT", 1)


def test_a_rigid_curve_has_a_rate_on_the_whole_gang_only(tmp_path):
    table = small_table(tmp_path)
    assert table.rigid_curve("LM", 4, "v100").table(4).tolist() == [0, 0, 0, 0, 20]
    assert table.rigid_curve("LM", 1, "k80").table(1).tolist() == [0, 4]


def test_an_elastic_curve_goes_through_what_was_measured_and_not_towards_what_does_not_run(tmp_path):
    table = small_table(tmp_path)
    assert table.elastic_curve("LM", "v100").table(4).tolist() == [0, 10, 16, 18, 20]
    assert table.elastic_curve("LM", "k80").table(4).tolist() == [0, 4, 0, 0, 8]
    assert table.elastic_curve("A3C", "k80").table(1).tolist() == [0, 0]
    with pytest.raises(InputError, match="do not have the job type 'BERT'"):
        table.elastic_curve("BERT", "v100")


def test_a_rate_ends_beside_the_last_number_of_nodes_where_a_job_runs(tmp_path):
    def change(document):
        document["k80"] = {"('LM', 2)": {"null": 5.0}}
        document["v100"]["('LM', 8)"] = {"null": 30.0}

    table = read_throughputs(table_file(tmp_path, change))
    assert table.elastic_curve("LM", "k80").table(8).tolist() == [0, 0, 5, 0, 0, 0, 0, 0, 0]


def test_pairs_that_share_nodes_are_found_in_either_order(tmp_path):
    colocation = small_table(tmp_path).colocation()
    assert colocation.rates("A3C", "LM", 1, "v100") == (1.5, 8.0)
    assert colocation.rates("LM", "A3C", 1, "v100") == (8.0, 1.5)
    assert colocation.rates("LM", "LM", 2, "v100") == (9.0, 9.0)
    assert colocation.rates("LM", "LM", 4, "v100") == (0.0, 0.0)
    assert colocation.rates("LM", "A3C", 1, "k80") == (0.0, 0.0)


def test_a_gzipped_file_is_read_whatever_its_name(tmp_path):
    for name in ("table.json.gz", "table"):
        (tmp_path / name).write_bytes(gzip.compress(json.dumps(SMALL).encode()))
        table = read_throughputs(tmp_path / name)
        assert table.rate("LM", 1, "v100") == 10.0
        assert table.source.name == name


def test_a_job_type_with_an_apostrophe_stands_in_double_quotes(tmp_path):
    table = read_throughputs(table_file(tmp_path, lambda d: d["v100"].update({'("Kim\'s", 2)': {"null": 3.0}})))
    assert table.rate("Kim's", 2, "v100") == 3.0


BAD_TABLES = {
    "no rate of its own": (lambda d: d["k80"]["('LM', 1)"].pop("null"), "k80", "('LM', 1)"),
    "not written in the form of the file": (lambda d: d["k80"].update({"LM": {"null": 1.0}}), "k80", "LM"),
    "is not a rate": (lambda d: d["v100"]["('LM', 2)"].update({"null": -1}), "v100", "('LM', 2)"),
    "throughput is not a rate": (lambda d: d["v100"]["('LM', 2)"].update({"null": True}), "v100", "('LM', 2)"),
    "a throughput is": (lambda d: d["v100"]["('LM', 2)"].update({"null": float("nan")}), "v100", "('LM', 2)"),
    "does not have two rates": (
        lambda d: d["v100"]["('LM', 1)"].update({"('A3C', 1)": [1.0]}), "v100", "('LM', 1) with ('A3C', 1)",
    ),
    "a throughput": (
        lambda d: d["v100"]["('LM', 1)"].update({"('A3C', 1)": [1.0, "2"]}), "v100", "('LM', 1) with ('A3C', 1)",
    ),
    "different numbers of them": (
        lambda d: d["v100"]["('LM', 1)"].update({"('LM', 2)": [1, 1]}), "v100", "('LM', 1)",
    ),
    "this entry is not a table": (lambda d: d["v100"].update({"('LM', 1)": 4.0}), "v100", "('LM', 1)"),
    "has no table of job types": (lambda d: d.update({"p100": 4.0}), "p100", None),
    "listed twice": (lambda d: d["v100"].update({'("LM", 1)': {"null": 4.0}}), "v100", '("LM", 1)'),
    "every table is of gangs spread": (lambda d: (d.pop("v100"), d.pop("k80")), None, None),
    "has no name": (lambda d: d.update({" ": {}}), None, None),
    "has no node types": (lambda d: d.clear(), None, None),
}  # fmt: skip


@pytest.mark.parametrize("problem", BAD_TABLES)
def test_a_file_that_is_no_table_is_refused_with_its_place(tmp_path, problem):
    change, row, column = BAD_TABLES[problem]
    with pytest.raises(InputError, match=problem) as caught:
        read_throughputs(table_file(tmp_path, change))
    assert (caught.value.file, caught.value.row, caught.value.column) == (
        str(tmp_path / "throughputs.json"),
        row,
        column,
    )


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"v100,p100\n", "is not JSON"),
        (b"[1]", "is not a JSON object"),
        (b"\xff\xfe{", "is not UTF-8"),
        (gzip.compress(b"{}" * 999, mtime=0)[:20], "cannot be unpacked"),
        (b"", "is not JSON"),
    ],
)
def test_a_file_that_cannot_be_read_says_why(tmp_path, content, problem):
    (tmp_path / "t.json").write_bytes(content)
    with pytest.raises(InputError, match=problem) as caught:
        read_throughputs(tmp_path / "t.json")
    assert caught.value.file == str(tmp_path / "t.json")


@pytest.mark.parametrize("rate", [1e-320, 0.9e-9, 1.1e9, -1.0, True, 10**400])
def test_a_rate_that_is_none_is_refused(tmp_path, rate):
    key = "('ResNet-18 (batch size 16)', 1)"
    (tmp_path / "t.json").write_text(json.dumps({"v100": {key: {"null": rate}}}))
    with pytest.raises(InputError, match="a throughput is not a rate"):
        read_throughputs(tmp_path / "t.json")
    (tmp_path / "t.json").write_text(json.dumps({"v100": {key: {"null": 1e-9}}, "k80": {key: {"null": 1e9}}}))
    assert read_throughputs(tmp_path / "t.json").rate("ResNet-18 (batch size 16)", 1, "v100") == 1e-9


def test_the_published_table_has_the_isolated_rates(shared):
    table = read_throughputs(published(shared))
    with (shared / "data/gavel/isolated_throughputs.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == 83
    for row in rows:
        job_type, gang = row.pop("job_type"), int(row.pop("scale_factor"))
        assert {name: table.rate(job_type, gang, name) for name in row} == {
            name: float(value) if value else 0.0 for name, value in row.items()
        }
    cannot = [key for key, rate in table.alone["k80"].items() if rate == 0]
    assert cannot == [("ResNet-50 (batch size 128)", gang) for gang in (2, 4, 8)]


def test_the_published_pairs_are_never_faster_than_alone(shared):
    table = read_throughputs(published(shared))
    assert len(table.job_types) == 26
    colocation = table.colocation()
    assert len(colocation) == 5277
    for node_type in table.node_types:
        for (one, other, gang), both in table.shared[node_type].items():
            assert colocation.rates(other, one, gang, node_type) == both[::-1]
            assert both[0] <= table.rate(one, gang, node_type) * (1 + 1e-9)
