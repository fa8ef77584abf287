"""Puts the script that draws on the page beside its module: users then need not install plotly, 64 MB, for it."""

from __future__ import annotations

import shutil
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

SCRIPT = "package_data/plotly.min.js"
PLACE = "bfreplay/report/page/plotly.min.js"


class CustomBuildHook(BuildHookInterface):
    """Adds plotly.js and its licence to the wheel, or to the checkout that an editable installation runs."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Take the files from the package plotly, which pyproject.toml requires for the build."""
        added = {}
        try:
            plotly_files = files("plotly") or ()
        except PackageNotFoundError as error:
            raise RuntimeError(
                "The page of bfreplay needs plotly.min.js. Install what build-system.requires in pyproject.toml names, "
                "plotly included, or build with isolation."
            ) from error
        for file in plotly_files:
            if file.as_posix().endswith(SCRIPT):
                added[str(file.locate())] = PLACE
            elif file.name.startswith("LICENSE") and ".dist-info" in file.parts[0]:
                added[str(file.locate())] = f"{PLACE}.{file.name}"
        if PLACE not in added.values():
            raise FileNotFoundError(f"the package plotly has no {SCRIPT}")
        if version != "editable":
            build_data["force_include"].update(added)
            return
        for source, target in added.items():
            shutil.copyfile(source, Path(self.root, target))
