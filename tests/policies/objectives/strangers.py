"""Objectives as strangers write them, sound and broken ones."""

from __future__ import annotations

import numpy as np

from bfreplay.errors import InputError
from bfreplay.policies.objectives.catalogue import objective_of
from bfreplay.policies.objectives.objective import Rates


def steps(state, counts, *, height=2.0, shape="square", table=(1, 2)):
    assert shape == "square"
    assert table == (1, 2)
    return height * np.floor(counts / 2) * np.ones((state.n_jobs, 1))


def by_position(state, counts, height=1):
    return height * counts * np.ones((state.n_jobs, 1), dtype=np.int64)


def needs_one(state, counts, *, height):
    return height * np.ones((state.n_jobs, counts.size))


def over_the_time(state, counts, *, t_fwd_s):
    return np.full((state.n_jobs, counts.size), t_fwd_s)


def raises(state, counts):
    return {}[state.n_idle]


def refuses(state, counts):
    raise InputError("no model of this name is known")


def forgets_to_return(state, counts):
    np.sqrt(counts)


def of_the_wrong_shape(state, counts):
    return np.zeros(counts.size)


def of_text(state, counts):
    return np.full((state.n_jobs, counts.size), "much")


def of_truth(state, counts):
    return np.ones((state.n_jobs, counts.size), dtype=bool)


def of_a_list(state, counts):
    return [[0.0] * counts.size] * state.n_jobs


def not_a_number_on_two_nodes(state, counts):
    return np.where((counts == 2) & (state.job[:, None] == 8), np.nan, 1.0)


def infinite(state, counts):
    return np.where(counts == 1, -np.inf, np.zeros((state.n_jobs, 1)))


def too_large(state, counts):
    return np.full((state.n_jobs, counts.size), 1e31)


def gives_up_what_is_no_number(state, counts):
    nothing = np.zeros((state.n_jobs, counts.size))
    return Rates(nothing, nothing + np.inf)


def fails_when_something_has_been_made(state, counts):
    if state.progress.any():
        return None
    return state.throughput


def anything_beyond_the_most(state, counts):
    return np.where(counts <= state.max_nodes[:, None], 1.0 * counts, np.nan)


class Whole:
    def __init__(self, share=0.5, name="x"):
        self.share = share

    def problem(self, state, t_fwd_s):
        return objective_of("own").problem(state, t_fwd_s)


class NeverMade:
    def __init__(self):
        self.table = {}["x"]

    def problem(self, state, t_fwd_s):
        raise AssertionError


class Raises:
    def problem(self, state, t_fwd_s):
        return 1 // 0


class Refuses:
    def problem(self, state, t_fwd_s):
        raise InputError("no model of this name is known")


class ForgetsToReturn:
    def problem(self, state, t_fwd_s):
        pass


class PosesForOneJob:
    def problem(self, state, t_fwd_s):
        names = [name for name in vars(state) if isinstance(getattr(state, name), np.ndarray)]
        first = type(state)(state.time_us, state.n_idle, **{name: getattr(state, name)[:1] for name in names})
        return objective_of("own").problem(first, t_fwd_s)


class PosesNoNumbers:
    def problem(self, state, t_fwd_s):
        posed = objective_of("own").problem(state, t_fwd_s)
        posed.gain[1, 1] = np.nan
        return posed


NUMBER = 3
