"""Formulations that a stranger might write, each with one defect."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bfreplay.milp.formulations.choices import Choices
from bfreplay.milp.formulations.node_level import NodeLevel


class RaisesInBuild(Choices):
    def build(self, problem):
        return 1 / 0


class ChangesValues(Choices):
    def build(self, problem):
        problem.value[:] = 0.0
        return super().build(problem)


class ChangesValuesAndRaises(Choices):
    def read(self, problem, x):
        problem.gain[:] = 0.0
        problem.max_nodes[:] = 1
        raise RuntimeError("stopped")


class ChangesMuch(Choices):
    def read(self, problem, x):
        problem.gain[:] = 0.0
        problem.max_nodes[:] = 1
        return super().read(problem, x)


class RaisesInRead(Choices):
    def read(self, problem, x):
        raise KeyError("no\nsuch job")


class BuildsNothing(Choices):
    def build(self, problem):
        return None


class BuildsLists(Choices):
    def build(self, problem):
        model = super().build(problem)
        return replace(model, objective=model.objective.tolist())


class BuildsShortBounds(Choices):
    def build(self, problem):
        return replace(super().build(problem), column_upper=np.ones(3))


class BuildsOutside(Choices):
    def build(self, problem):
        model = super().build(problem)
        return replace(model, entry_column=model.entry_column + 1000)


class BuildsNan(Choices):
    def build(self, problem):
        model = super().build(problem)
        return replace(model, objective=model.objective * np.nan)


class BuildsOddNames(Choices):
    def build(self, problem):
        model = super().build(problem)
        return replace(model, column_names=tuple(lambda: None for _ in model.column_names))


class ReadsCountsOnly(Choices):
    def read(self, problem, x):
        return super().read(problem, x)[0]


class ReadsAList(Choices):
    def read(self, problem, x):
        return super().read(problem, x)[0].tolist(), None


class ReadsFloats(Choices):
    def read(self, problem, x):
        return super().read(problem, x)[0].astype(float), None


class ReadsTooMany(Choices):
    def read(self, problem, x):
        return np.append(super().read(problem, x)[0], 0), None


class ReadsNodesOutside(NodeLevel):
    def read(self, problem, x):
        return super().read(problem, x)[0], ((0, 99), (1, 2))


class ReadsOneNode(NodeLevel):
    def read(self, problem, x):
        return super().read(problem, x)[0], 7


class ReadsAnotherMap(NodeLevel):
    def read(self, problem, x):
        return super().read(problem, x)[0], ((0,), (1, 2))


class NeedsArguments(Choices):
    def __init__(self, how_many):
        self.how_many = how_many


class RaisesWhenMade(Choices):
    def __init__(self):
        raise RuntimeError("no configuration\nfound")


class LimitsItself(Choices):
    """No defect: as ``published``, it has a limit of its own on changes; its columns are those without the limit."""

    change_limited = True

    def build(self, problem):
        model = super().build(problem)
        limited = super().build(problem.within_published_limit()).column_names
        upper = np.where(np.isin(model.column_names, limited), model.column_upper, 0.0)
        return replace(model, column_upper=upper, start=None)


class ReadsConstantLosses(Choices):
    """As an older formulation of another package."""

    def build(self, problem):
        assert (problem.scale_up_loss >= 0).all()
        return super().build(problem)
