import numpy as np
import pytest

from bfreplay.datasets.ingest.occupancy.build import BEYOND, CUT_OFF, GAP, MOSTLY_CUT_OFF, TOO_MANY_NODES, build_events
from bfreplay.datasets.ingest.occupancy.findings import OVER_LIMIT
from bfreplay.datasets.ingest.occupancy.rules import OccupancyRules
from bfreplay.datasets.ingest.occupancy.schedule import ScheduleRecord, Window
from bfreplay.datasets.ingest.occupancy.spool import OPEN_END, JobSpool
from bfreplay.datasets.ingest.occupancy.window import BINS, _load, choose_window
from bfreplay.datasets.log.states import NodeState
from bfreplay.datasets.times import iso_utc
from bfreplay.errors import InputError
from tests.datasets.ingest.occupancy.small_records import counted, plain

S = 10**6
HOUR, DAY = 3_600 * S, 86_400 * S
T = 1_700_000_000 * S
N_NODES, WIDTH = 100, 4
ESTIMATE = OccupancyRules()


def schedule(days=60.0, jobs_a_day=70, seed=0):
    """A machine that is three fifths busy: start and end of each job, ``(J, 2)`` microseconds."""
    rng = np.random.default_rng(seed)
    start = T + rng.integers(0, int(days * 86_400), int(days * jobs_a_day)) * S
    return np.stack([start, start + rng.integers(1, 24 * 3_600, len(start)) * S], axis=1)


def logged(spans, extra=(), run_rows=10_000):
    """A log with these jobs, and others of ``(start, end, nodes)``."""
    record = ScheduleRecord(spool=JobSpool(run_rows))
    record.set_machine_size(N_NODES)
    n = len(spans)
    record.add_counted_jobs(np.arange(n), spans[:, 0].copy(), spans[:, 1].copy(), np.full(n, WIDTH))
    for i, (start_us, end_us, count) in enumerate(extra):
        record.add_job(f"extra {i}", start_us, end_us, None, count)
    return record


def window_of(record, rules=ESTIMATE, log_end_us=None):
    return choose_window(record, rules, record.last_stamp_us if log_end_us is None else log_end_us)


def overlap(spans, start, end):
    return spans[(spans[:, 1] > start) & (spans[:, 0] < end)]


FROM, TO = T + 20 * DAY, T + 40 * DAY
SELECTIONS = {
    "by start": lambda spans: spans[(spans[:, 0] >= FROM) & (spans[:, 0] < TO)],
    "by end": lambda spans: spans[(spans[:, 1] >= FROM) & (spans[:, 1] < TO)],
    "by overlap": lambda spans: overlap(spans, FROM, TO),
}


@pytest.mark.parametrize("how", SELECTIONS)
def test_the_window_lies_where_the_log_has_nearly_all_jobs(how):
    spans = schedule()
    chosen = SELECTIONS[how](spans)
    window = window_of(logged(chosen))
    assert window.why.startswith("estimated")
    assert FROM <= window.start_us < FROM + DAY
    assert TO - DAY < window.end_us <= TO
    # held nodes, in the window, of jobs that the log does not have
    there = {tuple(span) for span in chosen.tolist()}
    missing = [span for span in overlap(spans, window.start_us, window.end_us).tolist() if tuple(span) not in there]
    missing_us = sum(min(end, window.end_us) - max(start, window.start_us) for start, end in missing)
    all_us = sum(
        min(end, window.end_us) - max(start, window.start_us)
        for start, end in overlap(spans, window.start_us, window.end_us).tolist()
    )
    assert missing_us < 0.02 * all_us


@pytest.mark.parametrize("how", ["by start", "by end"])
def test_all_of_such_a_log_would_show_a_machine_that_seems_empty(how):
    record = logged(SELECTIONS[how](schedule()))
    whole = window_of(record, OccupancyRules(window="full"))
    estimated = window_of(record)
    assert whole.start_us < estimated.start_us or estimated.end_us < whole.end_us
    assert whole.why.startswith("the whole log, as requested")
    assert (whole.start_us, whole.end_us) == (record.first_start_us, record.last_stamp_us)


def test_the_window_begins_and_ends_with_whole_seconds():
    window = window_of(logged(schedule() + 123_457))
    assert (window.start_us % S, window.end_us % S) == (0, 0)


def test_the_window_does_not_depend_on_the_pieces_of_the_log():
    spans = schedule(20)
    assert window_of(logged(spans)) == window_of(logged(spans, run_rows=37)) == window_of(logged(spans[::-1]))


def test_long_jobs_that_run_into_the_log_do_not_move_its_edges():
    spans = SELECTIONS["by start"](schedule())
    early = [(FROM - i * DAY, FROM + HOUR, 1) for i in range(1, 15)]
    window = window_of(logged(spans, early))
    assert FROM < window.start_us < FROM + DAY


@pytest.mark.parametrize("days_off", [-8_000, 8_000])
def test_a_stray_date_decades_away_does_not_move_the_window_of_a_long_log(days_off):
    spans = schedule(400)
    usual = window_of(logged(spans))
    stray = T + days_off * DAY
    window = window_of(logged(spans, [(stray, stray + HOUR, 1)]))
    assert abs(window.start_us - usual.start_us) < DAY
    assert abs(window.end_us - usual.end_us) < DAY


def test_many_stray_dates_do_not_move_it_either():
    spans = schedule(400)
    usual = window_of(logged(spans))
    strays = [(T - i * 700 * DAY, T - i * 700 * DAY + HOUR, 1) for i in range(1, 12)]
    window = window_of(logged(spans, strays))
    assert abs(window.start_us - usual.start_us) < DAY
    assert abs(window.end_us - usual.end_us) < DAY


def test_running_jobs_hold_their_nodes_to_the_end_of_the_log():
    spans = SELECTIONS["by start"](schedule())
    is_running = spans[:, 1] >= TO
    cut = spans.copy()
    cut[is_running, 1] = OPEN_END
    record = logged(cut)
    assert record.n_open == is_running.sum() > 0
    window = window_of(record)
    assert TO - DAY < window.end_us <= TO


def test_the_half_that_is_usual_is_said_and_holds():
    record = logged(SELECTIONS["by start"](schedule()))
    window = window_of(record)
    usual = float(window.why.split("half of the usual ")[1].split(" nodes")[0])
    assert usual == pytest.approx(70 / 2 * WIDTH, rel=0.05)
    held = sum(
        WIDTH * np.count_nonzero((rows.start_us <= window.start_us) & (rows.end_us > window.start_us))
        for rows, _ in record.jobs.slices()
    )
    assert 0.4 * usual < held < 0.75 * usual
    assert window.end_us - window.start_us > BINS * S


def test_a_log_whose_jobs_overlap_is_too_short_to_have_edges():
    record = logged(np.array([[T, T + 3 * HOUR], [T + HOUR, T + 2 * HOUR]]))
    window = window_of(record)
    assert window == Window(T, T + 3 * HOUR, "the whole log: it is too short to find its edges")


def test_the_first_end_and_the_last_start_at_one_time_leave_no_window_between():
    record = logged(np.array([[T, T + HOUR], [T + HOUR, T + 2 * HOUR]]))
    assert window_of(record).why.startswith("the whole log: it is too short")


def test_a_log_of_one_row_is_all_of_it():
    record = logged(np.array([[T, T + HOUR]]))
    assert (window_of(record).start_us, window_of(record).end_us) == (T, T + HOUR)
    built = build_events(record)
    assert built.report.facts["node_hours"] == {"idle": N_NODES - WIDTH, "busy": WIDTH}


def test_a_log_of_few_jobs_is_cut_to_its_first_end_and_last_start():
    spans = np.array([[T + i * 1_000 * DAY, T + i * 1_000 * DAY + HOUR] for i in range(5)])
    window = window_of(logged(spans))
    assert (window.start_us, window.end_us) == (T + HOUR, T + 4_000 * DAY)
    assert "too few jobs" in window.why


def test_a_log_that_says_what_it_covers_is_believed():
    record = logged(schedule(5))
    record.covers(T - DAY, T + 3 * DAY, "the export says so")
    assert window_of(record) == Window(T - DAY, T + 3 * DAY, "the export says so")
    whole = window_of(record, OccupancyRules(window="full"))
    assert whole.start_us == T - DAY
    given = window_of(record, OccupancyRules(window=(T - DAY, T)))
    assert (given.start_us, given.end_us) == (T - DAY, T)


def test_a_window_that_is_given_is_taken_as_it_is():
    record = logged(schedule(5))
    window = window_of(record, OccupancyRules(window=(T + DAY + 1, T + 2 * DAY)))
    assert window == Window(T + DAY + 1, T + 2 * DAY, "as given")
    assert window.to_json() == {
        "start": "2023-11-15T22:13:20.000001Z",
        "end": "2023-11-16T22:13:20Z",
        "why": "as given",
    }


@pytest.mark.parametrize(
    ("window", "problem"),
    [
        ((T + DAY, T + DAY), "the window is empty"),
        ((T + DAY, T), "the window is empty"),
        ((T - DAY, T), "outside the log"),
        ((T + 10 * HOUR, T + 11 * HOUR), "outside the log"),
        ((T - DAY, T + 1), None),
        ((T + 10 * HOUR - 1, T + 11 * HOUR), None),
    ],
)
def test_a_window_must_have_a_part_of_the_log(window, problem):
    record = logged(np.array([[T, T + 10 * HOUR]]))
    rules = OccupancyRules(window=window)
    if problem is None:
        assert (window_of(record, rules).start_us, window_of(record, rules).end_us) == window
        return
    with pytest.raises(InputError, match=problem) as caught:
        window_of(record, rules)
    assert caught.value.column == "--window"
    assert caught.value.fix == ("swap the two times" if window[0] > window[1] else "choose a window inside the log")
    assert "2023-11-14T22:13:20Z to 2023-11-15T08:13:20Z" in caught.value.expected


@pytest.mark.parametrize("window", ["estimate", "full", (T, T + DAY)])
def test_a_log_of_no_length_is_refused(window):
    record = logged(np.empty((0, 2), np.int64), [(T, None, 1)])
    with pytest.raises(InputError, match="the log covers no time") as caught:
        window_of(record, OccupancyRules(window=window))
    assert caught.value.value == "2023-11-14T22:13:20Z to 2023-11-14T22:13:20Z"
    with pytest.raises(InputError, match="the log covers no time") as caught:
        window_of(ScheduleRecord(), OccupancyRules(window=window))
    assert caught.value.value == "no interval"


def test_a_job_that_runs_while_the_log_is_written_gives_it_its_length():
    record = logged(np.empty((0, 2), np.int64), [(T, None, 1)])
    window = window_of(record, log_end_us=T + DAY)
    assert (window.start_us, window.end_us) == (T, T + DAY)


def test_samples_without_jobs_begin_where_the_first_one_does():
    record = ScheduleRecord()
    record.add_outage(NodeState.BUSY, T + HOUR, T + 2 * HOUR, record.node_ids("a"))
    record.add_outage(NodeState.DOWN, T, T + HOUR, record.node_ids("b"))
    window = window_of(record)
    assert (window.start_us, window.end_us) == (T, T + 2 * HOUR)
    record.add_job(1, T + HOUR, T + 3 * HOUR, record.node_ids("a"))
    assert window_of(record).start_us == T + HOUR  # outages before the first job do not begin the log


def test_the_estimate_ends_no_later_than_the_log():
    window = window_of(logged(schedule()), log_end_us=T + 10 * DAY)
    assert T < window.start_us < T + DAY
    assert T + 9 * DAY < window.end_us <= T + 10 * DAY


@pytest.mark.parametrize("span", [(T, T + 20 * DAY), (T + 3 * DAY + 17, T + 9 * DAY), (T - 5 * DAY, T + 40 * DAY)])
def test_the_load_is_the_mean_number_of_nodes_held(span):
    spans = schedule(20)
    record = logged(spans, [(T - DAY, None, 3)], run_rows=500)
    edges, load = _load(record, *span)
    assert (edges[0], len(edges), len(load)) == (span[0], BINS + 1, BINS)
    assert edges[-2] < span[1] <= edges[-1]
    for i in range(0, BINS, 97):
        inside = np.minimum(spans[:, 1], edges[i + 1]) - np.maximum(spans[:, 0], edges[i])
        held = WIDTH * np.maximum(inside, 0).sum() + 3 * max(int(edges[i + 1] - max(edges[i], T - DAY)), 0)
        assert load[i] == pytest.approx(held / (edges[1] - edges[0]), abs=1e-6)


def far_away(stray_us, **changes):
    jobs = [(T + i * HOUR, T + (i + 3) * HOUR, 1) for i in range(240)]
    return build_events(counted([*jobs, (T + stray_us, T + stray_us + HOUR, 1)]), plain(**changes))


def test_a_row_of_another_century_is_a_warning_about_a_window_that_holds_it():
    built = far_away(75 * 365 * DAY)
    warning = built.report.warnings[GAP]
    begin_us, end_us = (T + 10 * DAY, T + 75 * 365 * DAY)
    assert warning.examples[0].value[:10] in {f"{iso_utc(begin_us + k * DAY)}"[:10] for k in range(15)}
    assert warning.node_hours == pytest.approx(4 * (end_us - begin_us) / HOUR, rel=1e-3)
    assert GAP not in far_away(75 * 365 * DAY, window="estimate").report.warnings


@pytest.mark.parametrize(("days", "is_warning"), [(20, False), (39, False), (45, True), (-35, True), (-29, False)])
def test_a_gap_is_a_warning_if_it_is_more_than_a_month_and_more_than_half_of_the_log(days, is_warning):
    assert (GAP in far_away(days * DAY).report.warnings) == is_warning


@pytest.mark.parametrize(
    ("hours", "limit_h", "over_h"), [(4, 2, 0), (5, 2, 3), (2, 1, 0), (1, 0.1, 0), (1.2, 0.1, 1.1)]
)
def test_a_job_far_beyond_its_time_limit_is_a_warning(hours, limit_h, over_h):
    record = counted([(T, T + 20 * HOUR, 1)])
    limit_us = T + round(limit_h * HOUR)
    record.add_job("long", T, T + round(hours * HOUR), None, 2, limit_end_us=limit_us)
    warning = build_events(record, plain()).report.warnings.get(OVER_LIMIT)
    assert (warning.node_hours if warning else 0) == pytest.approx(2 * over_h)


@pytest.mark.parametrize(("before_h", "behind_h"), [(2, 0), (0, 3), (5, 1), (0, 0)])
def test_a_window_beyond_the_log_has_the_idle_hours_there(before_h, behind_h):
    record = counted([(T, T + 10 * HOUR, 1), (T + 5 * HOUR, T + 10 * HOUR, 2)])
    window = T - before_h * HOUR, T + (10 + behind_h) * HOUR
    warning = build_events(record, plain(window=window, empty_machine="idle")).report.warnings.get(BEYOND)
    assert (warning.node_hours if warning else 0) == 4 * (before_h + behind_h)


def test_more_listed_nodes_than_the_given_size_are_in_doubt_for_all_the_window():
    record = ScheduleRecord()
    record.set_machine_size(2)
    record.add_job(1, T, T + 10 * HOUR, record.node_ids(["a", "b", "c", "d", "e"]))
    assert build_events(record, plain()).report.warnings[TOO_MANY_NODES].node_hours == 3 * 10


def test_what_an_estimated_window_leaves_out_is_told_and_makes_no_idle_node_wrong():
    jobs = [(T + k * HOUR, T + (k + 2) * HOUR, 2) for k in range(40)]
    built = build_events(counted([*jobs, (T, T + 60 * DAY, 1)]), plain(window="estimate"))
    warning = built.report.warnings[MOSTLY_CUT_OFF]
    share = built.window.share_inside
    assert share < 0.5
    assert warning.node_hours == pytest.approx((1 - share) * (40 * 4 + 60 * 24))
    assert warning.aside == CUT_OFF
    found = built.events.metadata.log_warnings
    assert found.most_node_hours < warning.node_hours
