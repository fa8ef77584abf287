"""Picture files: their format, the same bytes, whole or not at all."""

from __future__ import annotations

import pytest

from bfreplay.errors import InputError, OutputExistsError
from bfreplay.report.figures.axes import new_figure
from bfreplay.report.figures.picture_files import check_picture, save_picture, write_figure


def figure():
    made = new_figure(2.0, 1.0)
    made.add_subplot().fill_between([0, 1], [0, 1], hatch="//")  # a hatch has an id in an SVG
    return made


def test_a_picture_that_is_there_or_of_another_kind_is_refused(tmp_path):
    (tmp_path / "run.png").write_text("mine")
    with pytest.raises(OutputExistsError, match="--force"):
        check_picture(tmp_path / "run.png")
    with pytest.raises(OutputExistsError, match="--force"):
        save_picture(figure(), tmp_path / "run.png")
    assert check_picture(tmp_path / "run.png", overwrite=True) == "png"
    assert check_picture(tmp_path / "new.SVG") == "svg"
    for name in ("run.pdf", "png"):
        with pytest.raises(InputError, match=r"\.png or \.svg"):
            check_picture(tmp_path / name)
    assert (tmp_path / "run.png").read_text() == "mine"


@pytest.mark.parametrize(("name", "start"), [("a.png", b"\x89PNG"), ("a.SVG", b"<?xml")])
def test_the_ending_says_the_format_and_the_same_figure_gives_the_same_bytes(tmp_path, name, start):
    save_picture(figure(), tmp_path / name)
    first = (tmp_path / name).read_bytes()
    assert first.startswith(start)
    save_picture(figure(), tmp_path / name, overwrite=True)
    assert (tmp_path / name).read_bytes() == first
    write_figure(figure(), tmp_path / "other.part", check_picture(tmp_path / name, overwrite=True))
    assert (tmp_path / "other.part").read_bytes() == first


def test_nothing_is_left_of_a_picture_that_cannot_be_drawn(tmp_path):
    broken = figure()
    broken.axes[0].set_title(r"$\nosuch$")
    (tmp_path / "a.png").write_text("mine")
    with pytest.raises(ValueError, match="nosuch"):
        save_picture(broken, tmp_path / "a.png", overwrite=True)
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [("a.png", "mine")]
    with pytest.raises(InputError, match="folder"):
        save_picture(figure(), tmp_path / "nowhere" / "a.png")
