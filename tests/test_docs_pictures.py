"""Pictures in the docs are what ``docs/make_pictures.py`` makes of the bundled log."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from PIL import Image

ROOT = Path(__file__).resolve().parents[1]
PICTURES = ROOT / "docs" / "pictures"
_script = importlib.util.spec_from_file_location("make_pictures", ROOT / "docs" / "make_pictures.py")
make_pictures = importlib.util.module_from_spec(_script)
_script.loader.exec_module(make_pictures)


@pytest.fixture(scope="module")
def remade(tmp_path_factory):
    """A folder with the pictures that matplotlib draws, made anew."""
    folder = tmp_path_factory.mktemp("pictures")
    make_pictures.make_runs(folder)
    make_pictures.draw(folder, folder)
    return folder


@pytest.mark.slow
def test_pictures_drawn_by_matplotlib_are_those_in_the_docs(remade):
    differ = [name for name in (*make_pictures.PLOTS, *make_pictures.OF_DESCRIBE) if not _is_as_in_docs(remade, name)]
    assert differ == [], "make them again: python docs/make_pictures.py"


LONG = ("tune", "compare_policies", "own_formulation", "own_objective", "product_rules")
"""Scripts that only `make test-all` runs."""


@pytest.mark.slow
@pytest.mark.parametrize(
    "script",
    [
        pytest.param(script, id=script.stem, marks=[pytest.mark.thorough] if script.stem in LONG else [])
        for script in make_pictures.GALLERY
    ],
)
def test_a_script_of_the_gallery_prints_numbers_and_draws_the_picture_in_the_docs(script, tmp_path):
    assert re.search(r"\d", make_pictures.run_gallery_script(script, tmp_path, tmp_path))
    picture = make_pictures.gallery_picture(script)
    assert _is_as_in_docs(tmp_path, picture), "make it again: python docs/make_pictures.py"
    page = (ROOT / "docs" / "gallery.md").read_text()
    assert f"(pictures/{picture})" in page
    assert f"../examples/gallery/{script.name}" in page


def _is_as_in_docs(folder: Path, name: str) -> bool:
    pinned = re.search(r"^matplotlib==(\S+)", (ROOT / "constraints.txt").read_text(), re.MULTILINE).group(1)
    new, old = (np.asarray(Image.open(each / name).convert("RGB")) for each in (folder, PICTURES))
    # another release may set letters otherwise: then only the size is the same
    return np.array_equal(new, old) if matplotlib.__version__ == pinned else new.shape == old.shape


@pytest.mark.parametrize(
    "name",
    [
        *make_pictures.PLOTS,
        *make_pictures.OF_DESCRIBE,
        *make_pictures.SCREENSHOTS,
        *map(make_pictures.gallery_picture, make_pictures.GALLERY),
    ],
    ids=str,
)
def test_a_picture_is_light_and_wide_enough_to_read(name):
    assert (PICTURES / name).stat().st_size < 120_000
    assert 800 <= Image.open(PICTURES / name).width <= 1400
