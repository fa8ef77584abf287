"""What is said of a recommendation: its worth on the other part, and what not to trust."""

import numpy as np
import pytest

from bfreplay.experiments.tuning.grid import FINISH, SAMPLES, Grid, LogPart, Surface, seconds
from bfreplay.experiments.tuning.recommendation import cautions, recommend, validate
from bfreplay.experiments.tuning.tuning_text import answer_of

GRID = Grid((60.0, 300.0, 600.0), (10, 70))
HOUR = 3_600_000_000
PARTS = (LogPart(0, 2 * HOUR), LogPart(2 * HOUR, 4 * HOUR))
TUNED = [[90, 97], [94, 100], [93, 99]]


def _surface(value, *, measure=SAMPLES, bound=0.9, n_pool_events=100, idle_nodes=4.0):
    value = np.array(value, dtype=float)
    return Surface(
        measure, value, np.zeros(value.shape, dtype=np.int64), np.full(value.shape, bound), n_pool_events, idle_nodes
    )


def _found(tuned, grid=GRID):
    return recommend(grid, tuned.share, tuned.rescales)


def _answer(other, tuned=None, grid=GRID):
    tuned = _surface(TUNED) if tuned is None else tuned
    found = _found(tuned, grid)
    return answer_of(grid, found, validate(grid, found, other), (tuned, other))


def _cautions(tuned, other, grid=GRID, parts=PARTS):
    return cautions(grid, _found(tuned, grid), parts, (tuned, other), 0.01)


def test_regret_is_against_the_best_t_fwd_with_as_many_jobs_and_against_the_best_pair():
    other = _surface([[99, 80], [1, 76], [2, 79]], bound=0.5)
    worth = validate(GRID, _found(_surface(TUNED)), other)
    assert worth.loss == pytest.approx(0.05)
    assert worth.best_t_fwd == 60.0
    assert worth.loss_of_grid == pytest.approx(1 - 76 / 99)
    assert worth.best_pair == (60.0, 10)
    assert worth.share_of_bound == 0.5


def test_a_tie_on_the_other_part_is_no_regret():
    worth = validate(GRID, _found(_surface(TUNED)), _surface([[5, 5]] * 3))
    assert (worth.loss, worth.best_t_fwd) == (0.0, 300.0)


def test_one_value_of_t_fwd_says_nothing_about_others():
    grid = Grid((60.0,), (10, 70))
    second = _answer(_surface([[80, 90]]), _surface([[97, 100]]), grid)[1]
    assert second.startswith("No T_fwd but 60 s was tried, so nothing is known about other values")


def test_where_nothing_is_processed_nothing_is_told():
    other = _surface([[0, 0]] * 3, bound=np.nan)
    assert validate(GRID, _found(_surface(TUNED)), other) is None
    assert "so its value is unknown" in _answer(other)[0]


def test_the_answer_says_what_to_use_and_what_that_gave_elsewhere():
    first, second = _answer(_surface([[80, 90], [85, 99.9], [84, 100]], bound=0.976))
    assert first == (
        "Use --t-fwd 300 --max-parallel 70: on the rest of the log, on which it was not tuned, this gives 97.6 % of "
        "the upper bound, 0.100 % less than the best value there (600 s)."
    )
    assert second == (
        "T_fwd matters: of the fixed values only 300 s is within 0.5 % of the best; 10 jobs at once "
        "process 6 % fewer samples."
    )


def test_the_answer_says_so_where_nothing_was_better():
    assert "no other T_fwd tried is better there" in _answer(_surface(TUNED))[0]


def test_a_time_is_told_where_all_work_was_done():
    tuned = _surface([[900, 800], [900, 700], [900, 750]], measure=FINISH)
    other = _surface([[900, 1600], [900, 1000], [900, 800]], measure=FINISH)
    assert tuned.share[:, 1].tolist() == pytest.approx([700 / 800, 1, 700 / 750])
    assert (
        "all work is done after 16.7 min, 20 % slower than with the best value there (600 s)"
        in (_answer(other, tuned)[0])
    )


def test_work_that_is_nothing_is_done_at_once():
    assert _surface([[0, 0], [0, 5], [0, 0]], measure=FINISH).share.tolist() == [[1, 1], [1, 0], [1, 1]]


def test_the_best_at_the_edge_of_the_grid_is_a_warning():
    inside = _surface(TUNED)
    assert _cautions(_surface([[98, 99], [99.2, 99.5], [96, 99]]), inside) == []
    lower = _surface([[98.5, 99], [96, 98], [95, 97]])
    (said_,) = _cautions(lower, inside)
    assert "60 s is the best T_fwd, at the edge" in said_
    assert "below it" in said_
    upper = _surface([[90, 97], [92, 98], [99.5, 100]])
    (said_,) = _cautions(upper, inside)
    assert "600 s is the best T_fwd, at the edge" in said_
    assert "above it" in said_
    (said_,) = _cautions(inside, inside)
    assert "70 is the largest number of jobs at once tried, and 10 process 6 % fewer samples" in said_
    assert _cautions(inside, inside, Grid(GRID.t_fwd, GRID.max_parallel, takes_all_jobs=True)) == []


def test_auto_is_no_edge():
    grid = Grid((60.0, 300.0, "auto"), (10, 70), takes_all_jobs=True)
    assert _cautions(_surface([[90, 97], [94, 98], [93, 100]]), _surface(TUNED), grid) == []


def test_a_t_fwd_that_changes_nothing_is_a_warning():
    (said_,) = _cautions(_surface([[90, 90]] * 3), _surface(TUNED))
    assert "changes nothing" in said_


def test_a_short_log_is_a_guess():
    flat = _surface([[99, 99], [99.5, 99.6], [99, 99]])
    assert _cautions(flat, flat) == []
    short = _surface([[99, 99], [99.5, 99.6], [99, 99]], n_pool_events=49)
    assert "The result is a guess" in _cautions(flat, short)[0]
    assert "49 pool events to tune on and 100" in _cautions(short, flat)[0]


def test_parts_that_are_unlike_are_told_apart():
    flat = _surface([[99, 99], [99.5, 99.6], [99, 99]])
    more = _surface([[99, 99], [99.5, 99.6], [99, 99]], idle_nodes=6.5)
    (said_,) = _cautions(flat, more)
    assert "4 and 6.50 idle nodes on average" in said_
    assert "events an hour" not in said_
    often = _surface([[99, 99], [99.5, 99.6], [99, 99]], n_pool_events=200)
    (said_,) = _cautions(flat, often)
    assert "50 and 100 pool events an hour" in said_
    assert "1970-01-01T02:00:00Z" in said_


def test_forward_times_are_words():
    assert [seconds("auto"), seconds(2.5)] == ["auto", "2.5 s"]
