"""What the page and the figures show of a cluster of several types, of shared nodes and of measured jobs."""

from __future__ import annotations

import pytest

from bfreplay.report.figures.efficiency import efficiency
from bfreplay.report.figures.figure import NothingToShowError
from bfreplay.report.figures.job_timeline import JOBS, job_timeline
from bfreplay.report.figures.rescales import CAUSES, rescales
from bfreplay.report.figures.timeline import timeline
from bfreplay.report.figures.widths import widths
from bfreplay.report.page.document import write_report
from tests.report.figures.drawn import check_page
from tests.report.page.read_page import ReadPage


@pytest.fixture(scope="module")
def packed_file(packed_run, tmp_path_factory):
    return write_report(packed_run, tmp_path_factory.mktemp("pages") / "packed.html")


@pytest.fixture(scope="module")
def packed_page(packed_file):
    return ReadPage(packed_file.read_text())


def rows(page, name):
    table = page.tables[name]
    return [dict(zip(table.columns, (value for value, _ in row), strict=True)) for row in table.rows]


def test_the_page_of_a_cluster_speaks_of_a_cluster(packed_page, packed_file):
    assert packed_page.headings[0][1] == "Training on a cluster of v100=2,p100=1"
    text = packed_file.read_text()
    assert '<span class="card-title">Utilisation</span>' in text
    assert "Neither U nor an upper bound is given: nodes are of several types." in text
    assert "Two jobs had the same nodes at times" in text
    assert "1970-" not in text[: text.index("<script>")]


def test_a_row_a_type_has_its_nodes_hours_price_and_cost(packed_page, packed_run):
    held = packed_run.allocations
    held["us"] = (held["to"] - held["from"]).dt.total_seconds() * held["count"] / (1 + (held["sharing"] > 0))
    by_type = held.groupby("node_type", observed=True)["us"].sum() / 3600
    found = {row["node_type"]: row for row in rows(packed_page, "scheduling-table-1")}
    assert set(found) == {"v100", "p100"}
    for name, nodes, price in (("v100", 2, 0.74), ("p100", 1, 0.43)):
        assert int(found[name]["nodes"]) == nodes
        assert float(found[name]["price"]) == price
        assert float(found[name]["held_node_hours"]) == pytest.approx(by_type[name])
        assert float(found[name]["cost"]) == pytest.approx(by_type[name] * price)


def test_a_row_a_weight_has_its_jobs_and_their_time(packed_page, packed_run):
    jobs = packed_run.jobs
    jct_s = (jobs["finished"] - jobs["submitted"]).dt.total_seconds()
    found = rows(packed_page, "scheduling-table-2")
    assert [(row["weight"], row["n_jobs"], row["n_completed"]) for row in found] == [("1", "4", "4"), ("5", "2", "2")]
    for row in found:
        assert float(row["average_jct_s"]) == pytest.approx(jct_s[jobs["weight"] == float(row["weight"])].mean())


def test_a_run_about_some_jobs_says_so(typed_run, tmp_path):
    text = write_report(typed_run, tmp_path / "page.html").read_text()
    assert "the others only kept the machine busy" in text
    assert ReadPage(text).tables["scheduling-table-1"].rows
    assert "scheduling-table-2" not in ReadPage(text).tables  # all jobs have one weight


def test_a_run_without_types_and_weights_has_no_such_section(all_idle_run, tmp_path):
    page = ReadPage(write_report(all_idle_run, tmp_path / "page.html").read_text())
    assert not any(name.startswith("scheduling") for name in page.tables)


def test_shared_nodes_are_counted_once_over_time(packed_run):
    held_us = packed_run.summary["ledger"]["allocated_node_us"]
    window_us = packed_run.record["config"]["window_end_us"]
    over_time, wide = timeline(packed_run), widths(packed_run)
    assert over_time.held.area_us == held_us
    assert over_time.share == pytest.approx(held_us / packed_run.summary["ledger"]["idle_node_us"])
    assert wide.mean_held == pytest.approx(held_us / window_us)
    assert over_time.held.most.max() == wide.held.nodes[-1] == 3


def test_the_timeline_of_jobs_says_where_their_nodes_are(packed_run):
    found = job_timeline(packed_run)
    held = packed_run.allocations.sort_values("from", kind="stable")
    for row in found.rows:
        mine = held[held["job"] == row.jobs[0]]
        places = zip(mine["node_type"], mine["sharing"], strict=True)
        told = [f"{kind}{', shared' if sharing else ''}" for kind, sharing in places]
        expected = [words for k, words in enumerate(told) if k == 0 or told[k - 1] != words]
        assert [words for _, words in row.places] == expected
    assert {words for row in found.rows for _, words in row.places} >= {"v100", "v100, shared", "p100"}
    words = JOBS.words({"": found})
    by_type = packed_run.summary["scheduling"]["node_hours_by_type"]
    assert f"{by_type['v100']:.3g} of v100" in words
    assert "nodes that two jobs share are shown with both" in words
    figure = check_page(JOBS.page({"": found}))
    places = figure.traces[0]["meta"]["row_places"]
    assert [each["place"] for each in places] == [[words for _, words in row.places] for row in found.rows]
    assert places[0]["since_s"][0] == 0.0


def test_the_timeline_of_jobs_on_nodes_that_are_all_alike_says_no_places(sample_run):
    assert all(row.places == () for row in job_timeline(sample_run).rows)
    assert "row_places" not in JOBS.page({"": job_timeline(sample_run)}).traces[0].get("meta", {})


def test_rescales_at_the_ends_of_rounds_are_told_as_such(packed_run):
    found = rescales(packed_run)
    assert found.by_cause["scaled_up"][CAUSES.index("a round ended")] > 0
    assert found.total("scaled_up") == packed_run.summary["n_scale_ups"]


def test_a_notebook_shows_what_became_of_the_jobs(packed_run, all_idle_run):
    assert "submit to finish, mean" in packed_run._repr_html_()
    assert "cost of the held node-hours" in packed_run._repr_html_()
    assert "submit to finish, mean" not in all_idle_run._repr_html_()


def test_why_there_is_no_baseline_is_said(packed_run):
    with pytest.raises(NothingToShowError, match="nodes are of several types"):
        efficiency(packed_run)


@pytest.mark.slow
def test_hovering_over_a_job_says_the_type_of_its_nodes(packed_file, packed_run, open_page):
    opened = open_page(packed_file)
    jobs = "pageFigures.find((figure) => figure.frame.id === 'plot-jobs')"
    assert "on %{text}" in opened.run(f"{jobs}.frame.data[0].hovertemplate")
    text, held = opened.run(f"[{jobs}.frame.data[0].text, {jobs}.frame.data[0].z]")
    for row, mine, nodes in zip(job_timeline(packed_run).rows, text, held, strict=True):
        shown = {word for words, there in zip(mine, nodes, strict=True) if there for word in words.split(" or ")}
        assert shown == {words for _, words in row.places}
