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


def test_pictures_drawn_by_matplotlib_are_those_in_the_docs(remade):
    pinned = re.search(r"^matplotlib==(\S+)", (ROOT / "constraints.txt").read_text(), re.MULTILINE).group(1)
    differ = []
    for name in (*make_pictures.PLOTS, *make_pictures.OF_DESCRIBE):
        new, old = (np.asarray(Image.open(folder / name).convert("RGB")) for folder in (remade, PICTURES))
        # another release may set letters otherwise: then only the size is the same
        same = np.array_equal(new, old) if matplotlib.__version__ == pinned else new.shape == old.shape
        if not same:
            differ.append(name)
    assert differ == [], "make them again: python docs/make_pictures.py"


@pytest.mark.parametrize(
    "name", [*make_pictures.PLOTS, *make_pictures.OF_DESCRIBE, *make_pictures.SCREENSHOTS], ids=str
)
def test_a_picture_is_light_and_wide_enough_to_read(name):
    assert (PICTURES / name).stat().st_size < 120_000
    assert 800 <= Image.open(PICTURES / name).width <= 1400
