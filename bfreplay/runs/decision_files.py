"""Decisions of a run as files for other programs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bfreplay.errors import BfreplayError, InputError
from bfreplay.milp.files.decision_json import write_decision
from bfreplay.milp.files.models import file_stem, write_lp, write_mps
from bfreplay.milp.formulations import Formulation, formulation_of
from bfreplay.milp.formulations.formulation import FormulationError, build_model
from bfreplay.outputs import make_folder, remove_empty, written_whole
from bfreplay.result_folders.writing import existing
from bfreplay.runs.saved_decisions import RecordedDecision


def decision_files(out: Path, index: int, formulations: Sequence[Formulation]) -> list[Path]:
    """Return the files of decision ``index``: the decision, then the model of each formulation as MPS and LP."""
    stem = f"decision-{index:06d}"
    models = [f"{stem}-{file_stem(formulation.name)}" for formulation in formulations]
    return [out / f"{stem}.json", *(out / f"{model}.{form}" for model in models for form in ("mps", "lp"))]


def check_export(
    out: Path, indices: Sequence[int], formulations: Sequence[str], *, overwrite: bool = False
) -> list[Formulation]:
    """Return the formulations, after checking that ``export_decisions`` can write their files.

    Raises
    ------
    InputError
        No such formulation, or two whose files would be the same.
    OutputExistsError
        A file exists and ``overwrite`` is off, or ``out`` is no folder.
    """
    formulation_objects = [formulation_of(name) for name in dict.fromkeys(formulations)]
    names = [file_stem(formulation.name) for formulation in formulation_objects]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InputError(
            "two formulations would have the same file",
            column="formulation",
            value=twice,
            expected="formulations of different names",
        )
    if out.exists() and not out.is_dir():
        raise existing("there is a file where the output folder should be", out, "choose another --out")
    for index in indices:
        for file in decision_files(out, index, formulation_objects):
            if file.exists() and not overwrite:
                raise existing("the file exists already", file, "choose another --out, or add --force to replace it")
    return formulation_objects


def export_decisions(
    decisions: Sequence[RecordedDecision],
    out: str | Path,
    formulations: Sequence[str] = ("choices",),
    *,
    overwrite: bool = False,
) -> list[Path]:
    """Write decisions as JSON, and their models as MPS and LP: all files, or none.

    Parameters
    ----------
    decisions
        Decisions to write.
    out
        Folder, made if missing. Other files in it stay.
    formulations
        Names, or ``package.module:Class``, of the models to write.
    overwrite
        Replace existing files.

    Returns
    -------
    list of Path
        Files written.

    Raises
    ------
    InputError, OutputExistsError
        As ``check_export``, or the folder cannot be written.
    BfreplayError
        A formulation cannot build its model.
    """
    folder = Path(out)
    by_index = {decision.index: decision for decision in decisions}
    formulation_objects = check_export(folder, list(by_index), formulations, overwrite=overwrite)
    paths = [file for index in by_index for file in decision_files(folder, index, formulation_objects)]
    try:
        fresh = make_folder(folder)
    except OSError as error:
        raise InputError(
            f"the output folder cannot be made: {error.strerror or error}",
            file=folder,
            expected="a folder in which you may write",
            fix="choose another --out",
        ) from error
    try:
        with written_whole(paths, overwrite) as temporary:
            places = iter(temporary)
            for decision in by_index.values():
                write_decision(decision.problem, next(places), decision.about)
                for formulation in formulation_objects:
                    try:
                        model = build_model(formulation, decision.problem)
                    except FormulationError as error:
                        raise BfreplayError(f"{error}\n  decision: {decision.index}") from error
                    write_mps(model, next(places))
                    write_lp(model, next(places))
    except BaseException:
        remove_empty(fresh)
        raise
    return paths
