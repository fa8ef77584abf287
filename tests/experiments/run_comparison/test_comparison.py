"""The whole comparison: its record, its folder, its sentence, and windows and jobs of all kinds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import msgspec
import numpy as np
import pyarrow.parquet as pq
import pytest

from bfreplay import load_events
from bfreplay.errors import InputError, OutputExistsError
from bfreplay.experiments import RunComparison, compare
from bfreplay.experiments.run_comparison.answer import answer_of
from bfreplay.experiments.run_comparison.comparison import render
from bfreplay.policies import Decision, EqualSharePolicy, Round
from bfreplay.replay import Semantics
from bfreplay.report import draw_comparison
from bfreplay.result_folders.comparison import Both, Causes, DifferingOption, Estimate, SamplesDifference
from bfreplay.runs import RunResult
from bfreplay.runs.comparison_tables import hour_table
from bfreplay.workload import JobSet
from tests.experiments.run_comparison.little_runs import (
    HOUR,
    busy_days,
    ending_jobs,
    endless_jobs,
    pair_of_runs,
    run,
    two_hours,
)
from tests.replay.tiny import SECOND, job, log
from tests.runs.explain.little_source import LittleHalving

ROOT = Path(__file__).resolve().parents[3]
FEW = {"resamples": 200}


@pytest.fixture(scope="module")
def folders(tmp_path_factory) -> list[Path]:
    """Folders of three runs of one busy log."""
    place = tmp_path_factory.mktemp("runs")
    for name, t_fwd in (("slow", 120.0), ("quick", 20.0), ("careful", 600.0)):
        run(busy_days(), endless_jobs(), t_fwd=t_fwd, out=place / name)
    return [place / name for name in ("slow", "quick", "careful")]


def test_every_other_run_is_compared_with_the_first(folders):
    found = compare(*folders, **FEW)
    assert [(pair["run"], pair["baseline"]) for pair in found.pairs] == [("B", "A"), ("C", "A")]
    samples = [RunResult.load(folder).summary["ledger"]["samples"] for folder in folders]
    for pair, mine in zip(found.pairs, samples[1:], strict=True):
        relative = pair["samples"]["relative"]
        assert pair["samples"]["difference"] == mine - samples[0]
        assert relative["value"] == pytest.approx(mine / samples[0] - 1)
        assert relative["low"] < relative["value"] < relative["high"]
        assert sum(pair["causes"].to_json().values()) == pytest.approx(mine - samples[0], rel=1e-6)
    assert found.record["options"] == [DifferingOption(option="policy.t_fwd_s", values=[120.0, 20.0, 600.0])]
    assert list(found.hours.groupby("run").size()) == [48, 48, 48]
    assert found.hours.groupby("run")["samples"].sum().tolist() == pytest.approx(samples, rel=1e-12)


def test_the_other_way_round_is_the_same_difference_with_the_other_sign(folders):
    forth, back = (compare(*two, **FEW).pairs[0] for two in (folders[:2], folders[1::-1]))
    assert forth["samples"]["difference"] == -back["samples"]["difference"]
    assert {name: -size for name, size in forth["causes"].to_json().items()} == back["causes"].to_json()
    a, b = forth["hours"][0]["mean"], back["hours"][0]["mean"]
    assert (a["value"], a["low"], a["high"]) == pytest.approx((-b["value"], -b["high"], -b["low"]))


@pytest.mark.parametrize("name", ["t_fwd", "policy", "published"])
def test_a_run_against_itself_differs_in_nothing(name):
    one = pair_of_runs(name)[0]
    found = compare(one, one, **FEW)
    (pair,) = found.pairs
    relative = pair["samples"]["relative"]
    assert (relative["value"], relative["low"], relative["high"]) == (0.0, 0.0, 0.0)
    for row in pair["hours"]:
        assert (row["total"]["value"], row["total"]["low"], row["total"]["high"]) == (0.0, 0.0, 0.0)
    assert set(pair["causes"].to_json().values()) == {0.0}
    assert pair["jobs"]["status_changes"] == []
    assert not found.cumulative[["difference", "low", "high"]].to_numpy().any()
    assert "as many samples as A" in pair["answer"]


@pytest.mark.often("ten minutes")
@pytest.mark.parametrize(
    ("events", "jobs", "told"),
    [
        pytest.param(two_hours(), JobSet([job(submit_s=9 * HOUR)]), "Neither B nor A processed any", id="no job"),
        pytest.param(log(2, [], 2 * HOUR), endless_jobs(), "Neither B nor A processed any", id="never idle"),
        pytest.param(log(4, [], 30 * HOUR, range(4)), endless_jobs(), "samples", id="always idle"),
        pytest.param(two_hours(), endless_jobs(), "only 2 bins", id="two hours"),
        pytest.param(log(2, [(60, 1, False)], 600, [0, 1]), endless_jobs(), "only 1 bin", id="ten minutes"),
    ],
)
def test_windows_with_little_in_them_have_an_answer(events, jobs, told, tmp_path):
    a, b = run(events, jobs), run(events, jobs, EqualSharePolicy(), max_parallel=2)
    found = compare(a, b, out=tmp_path / "found", pictures=draw_comparison, **FEW)
    assert told in found.answers[0]
    assert found.answers[0] in render(found)
    json.dumps(found.record.to_json(), allow_nan=False)


def test_where_one_run_made_nothing_there_is_no_share():
    jobs = JobSet([job(min_nodes=2)])
    narrow, wide = run(log(2, [], HOUR, [0, 1]), jobs), run(log(2, [], HOUR, [0, 1]), jobs, _Never())
    assert compare(wide, narrow, **FEW).answers == ["B processed 72,000 samples, A none."]
    assert compare(narrow, wide, **FEW).answers[0].startswith("B processed 100 % fewer samples than A")


class _Never(EqualSharePolicy):
    """Gives no node to anybody."""

    name = "never"

    def decide(self, state):
        return Decision(np.zeros(state.n_jobs, dtype=np.int64))


def test_where_both_did_all_the_work_times_make_the_difference():
    # two jobs of 108,000 samples: 10 samples/s on one node for 6 hours, or 20 on both for 3
    jobs = JobSet([job("a", work=108_000.0), job("b", work=108_000.0)])
    events = log(2, [], 50 * HOUR, [0, 1]).between(round(10 * HOUR) * SECOND, round(50 * HOUR) * SECOND)
    both, one = run(events, jobs), run(events, jobs, _OneNode())
    (pair,) = compare(both, one, **FEW).pairs
    assert pair["samples"]["equal_by_construction"]
    assert pair["samples"]["relative"]["low"] is None
    assert "all jobs were done in both" in pair["samples"]["relative"]["why_no_interval"]
    assert pair["over"] == Both(baseline=3 * HOUR, other=6 * HOUR)
    assert {row["mean"]["n"] for row in pair["hours"]} == {6}  # the hour that begins when all have left is none of them
    assert "all jobs were done in both. B was done 3 h later, after 6 h instead of 3 h; half of its" in pair["answer"]
    (back,) = compare(one, both, **FEW).pairs
    assert "B was done 3 h earlier, after 3 h instead of 6 h" in back["answer"]


def test_runs_whose_jobs_are_given_up_when_they_arrive_have_one_bin_with_jobs():
    class GivesUp(EqualSharePolicy):
        def decide(self, state):
            return Decision(
                np.zeros(state.n_jobs, dtype=np.int64), round=Round(failed=np.ones(state.n_jobs, dtype=bool))
            )

    runs = [run(log(2, [], 5 * HOUR, [0, 1]), JobSet([job(name)]), GivesUp()) for name in "aa"]
    (pair,) = compare(*runs, **FEW).pairs
    assert pair["over"] == Both(baseline=0.0, other=0.0)
    assert {row["mean"]["n"] for row in pair["hours"]} == {1}


class _OneNode(EqualSharePolicy):
    """One node for the first job."""

    name = "one-node"

    def decide(self, state):
        counts = np.zeros(state.n_jobs, dtype=np.int64)
        counts[0] = 1
        return Decision(counts)


def test_unlimited_work_pairs_the_jobs_that_both_have():
    runs = [run(busy_days(), endless_jobs(), unlimited_work=True, max_parallel=n) for n in (3, 2)]
    (pair,) = compare(*runs, **FEW).pairs
    assert (pair["jobs"]["n_jobs"], pair["jobs"]["only_in_baseline"]) == (2, 1)
    assert pair["over"] == Both(baseline=None, other=None)
    assert pair["samples"]["relative"]["low"] is not None


def test_campaigns_are_compared_by_finished_trials_and_scores():
    # four trials to 100 samples, two of them on to 400; three nodes instead of one make it quicker
    events = log(3, [], 40.0 * 3, range(3))
    one, three = (run(events, LittleHalving(), EqualSharePolicy(), max_parallel=n) for n in (1, 3))
    found = compare(one, three, **FEW)
    (pair,) = found.pairs
    campaign = pair["campaign"]
    assert [row["k"] for row in campaign["finished"]] == sorted({row["k"] for row in campaign["finished"]})
    finished = [sorted(each.jobs["finished"].dropna()) for each in (one, three)]
    first = campaign["finished"][0]
    assert first["k"] == 1
    assert first["baseline"] == finished[0][0].value / 1e9
    assert first["difference"] == pytest.approx((finished[1][0] - finished[0][0]).total_seconds())
    best = [each.summary["scores"]["best_score"] for each in (one, three)]
    assert (campaign["best_score"]["baseline"], campaign["best_score"]["other"]) == tuple(best)
    assert campaign["reached"]["score"] == min(best)
    reports = three.frame("reports")
    first_there = reports[reports["score"] >= min(best)]["time"].min()
    assert campaign["reached"]["other"] == first_there.value / 1e9
    assert found.answers[0].startswith("B finished")
    assert "the campaign" in render(found)


def test_the_sentence_tells_the_sign_the_interval_and_the_causes(folders):
    quick, careful = compare(*folders, **FEW).answers
    for text, run_label in ((quick, "B"), (careful, "C")):
        assert text.startswith(f"{run_label} processed ")
        assert "95 % interval" in text
        assert "mostly because" in text
    pair = compare(*folders[:2], **FEW).pairs[0]
    turned = msgspec.structs.replace(pair.samples, difference=-pair.samples.difference)
    more = msgspec.structs.replace(pair, samples=turned)
    words = {answer_of(each).split(" % ")[1].split()[0] for each in (pair, more)}
    assert words == {"more", "fewer"}


def test_an_interval_around_nothing_says_so(folders):
    pair = compare(*folders[:2], **FEW).pairs[0]
    relative = Estimate.interval(0.001, -0.01, 0.012, n=48)
    causes = Causes(node_hours=3.0, samples_per_node_hour=-0.5, rescaling=-1.5, preemption=0.0, trimmed=0.0)
    samples = SamplesDifference(
        baseline=1e3, other=1e3 + 1, difference=1.0, relative=relative, equal_by_construction=False
    )
    assert answer_of(msgspec.structs.replace(pair, samples=samples, causes=causes)) == (
        "B processed 0.100 % more samples than A (95 % interval of this share -1 to 1.20 %: not significant "
        "on this log alone), mostly because it used more node-hours (+0.300 %), although rescaling cost it more "
        "(-0.150 %)."
    )


@pytest.mark.slow
def test_the_folder_holds_record_tables_and_pictures_and_is_read_again(folders, tmp_path):
    found = compare(*folders, out=tmp_path / "found", pictures=draw_comparison, **FEW)
    pictures = {f"{name}.{end}" for name in ("differences-over-time", "causes") for end in ("png", "svg")}
    tables = {"hours.parquet", "jobs.parquet", "cumulative.parquet"}
    assert {path.name for path in (tmp_path / "found").iterdir()} == {"comparison.json", *tables, *pictures}
    again = RunComparison.load(tmp_path / "found")
    assert again.answers == found.answers
    assert again.jobs.equals(found.jobs)
    assert again.cumulative.equals(found.cumulative)
    with pytest.raises(OutputExistsError, match="--force"):
        compare(*folders, out=tmp_path / "found", **FEW)
    compare(*folders[:2], out=tmp_path / "found", overwrite=True, **FEW)
    assert len(RunComparison.load(tmp_path / "found").pairs) == 1
    with pytest.raises(InputError, match="not a comparison folder"):
        RunComparison.load(folders[0])


def test_a_changed_table_and_a_record_without_an_entry_are_refused(folders, tmp_path):
    place = tmp_path / "found"
    compare(*folders[:2], out=place, **FEW)
    pq.write_table(pq.read_table(place / "hours.parquet").slice(1), place / "hours.parquet")
    with pytest.raises(InputError, match=r"belongs to another comparison[\s\S]*hours\.parquet"):
        RunComparison.load(place).table("hours")
    record = json.loads((place / "comparison.json").read_text())
    del record["pairs"][0]["causes"]["rescaling"]
    (place / "comparison.json").write_text(json.dumps(record))
    with pytest.raises(InputError, match=r"rescaling[\s\S]*make it again: 'bfreplay compare runs --out'"):
        RunComparison.load(place)


@pytest.mark.thorough
def test_the_same_runs_give_the_same_bytes_whatever_the_hash_seed(folders, tmp_path):
    code = (
        "import sys; from bfreplay.experiments import compare\ncompare(*sys.argv[2:], out=sys.argv[1], resamples=200)"
    )
    for seed in ("1", "2"):
        subprocess.run(
            [sys.executable, "-c", code, str(tmp_path / seed), *map(str, folders)],
            check=True,
            env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": seed},
        )
    for name in ("hours.parquet", "jobs.parquet", "cumulative.parquet"):
        assert (tmp_path / "1" / name).read_bytes() == (tmp_path / "2" / name).read_bytes()
    records = [json.loads((tmp_path / seed / "comparison.json").read_text()) for seed in ("1", "2")]
    for record in records:
        del record["session"]
    assert records[0] == records[1]


@pytest.mark.parametrize(
    ("options", "told"),
    [({"resamples": 10}, "resamples is below 100"), ({"seed": -1}, "seed is below 0"), ({"bin": "x"}, "no length")],
)
def test_options_that_make_no_sense_are_refused(folders, options, told):
    with pytest.raises(InputError, match=told):
        compare(*folders, **{**FEW, **options})


def test_a_folder_that_is_no_run_is_refused(folders, tmp_path):
    with pytest.raises(InputError, match="not a run folder"):
        compare(folders[0], tmp_path)


def test_the_text_tells_everything_once(folders):
    text = render(compare(*folders[:2], **FEW))
    for word in ("policy.t_fwd_s", "by bins of 1 h", "Causes of", "node-hours used", "job by job", "not independent"):
        assert text.count(word) == 1, word
    assert "Window  1970-01-01T00:00:00Z to 1970-01-03T00:00:00Z (2 days)" in text


def test_what_the_text_says_of_runs_that_were_done_early():
    events = busy_days()
    a, b = run(events, ending_jobs(3)), run(events, ending_jobs(3), semantics=Semantics.PUBLISHED)
    text = render(compare(a, b, **FEW))
    assert "A had no work left after" in text
    assert "--unlimited-work" in text


@pytest.mark.thorough
def test_a_comparison_of_the_summit_log_takes_the_whole_log(shared):
    events = load_events(shared / "data" / "bftrainer" / "summit-2021-02-node-events.parquet")
    runs = [run(events, endless_jobs(), t_fwd=t_fwd) for t_fwd in (120.0, 10.0)]
    (pair,) = compare(*runs, **FEW).pairs
    assert pair["hours"][0]["total"]["n"] == 358
    assert pair["samples"]["relative"]["high"] < 0.0


def test_hours_after_all_jobs_had_left_both_runs_are_left_out_of_the_intervals():
    events = busy_days(4.0)
    jobs = JobSet([job("a", work=400_000.0, up_s=30.0, down_s=30.0), job("b", work=300_000.0)])
    pair = compare(run(events, jobs), run(events, jobs, t_fwd=5.0), **FEW).pairs[0]
    over = max(pair["over"].to_json().values())
    assert 4 * HOUR < over < 90 * HOUR
    for row in pair["hours"]:
        assert row["mean"]["n"] == np.ceil(over / HOUR)
        assert row["total"]["value"] == pytest.approx(row["other"] - row["baseline"], abs=1e-6 * abs(row["baseline"]))


def test_trials_of_a_campaign_that_is_not_over_are_counted():
    events = log(3, [], 30.0, range(3))
    one, three = (run(events, LittleHalving(), EqualSharePolicy(), max_parallel=n) for n in (1, 3))
    found = compare(one, three, **FEW).pairs[0]["campaign"]
    assert found["over"]["difference"] is None
    done = Both(baseline=one.summary["jobs"]["finished"], other=three.summary["jobs"]["finished"])
    assert found["n_finished"] == done
    none = run(log(3, [], 30.0), LittleHalving(), EqualSharePolicy())
    campaign = compare(none, none, **FEW).pairs[0]["campaign"]
    assert campaign["finished"] == []
    assert campaign["reached"] is None


def test_a_difference_that_is_only_rounding_is_none(folders):
    record = compare(*folders[:2], **FEW).record
    pair = record.pairs[0]
    row = next(row for row in pair.hours if row.measure == "held_node_hours")
    rounding = msgspec.structs.replace(row.total, value=row.baseline * 1e-15)
    one_row = msgspec.structs.replace(pair, hours=[msgspec.structs.replace(row, total=rounding)])
    table = hour_table(record, one_row)
    assert [column.key for column in table.columns][3] == "difference"
    assert table.rows[0][3] == 0
