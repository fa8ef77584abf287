"""Fixtures of all tests."""

import os
import sys
from pathlib import Path

import pytest
from hypothesis import settings

REPOSITORY = Path(__file__).resolve().parents[1]

os.environ.setdefault("BFREPLAY_COMPILE", "wait")  # what tests count does not depend on what is on disk
# hundreds of tests start Python anew: where byte code is not kept, each of them compiles the package again
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False


def shared_folder() -> Path:
    """Return where the published data and golden records should be."""
    return Path(os.environ.get("BFREPLAY_SHARED") or REPOSITORY.parent / "shared")


@pytest.fixture(scope="session")
def shared() -> Path:
    """Folder of the published data and golden records; tests that need it skip, by name, where it is absent.

    In CI, which has it, BFREPLAY_REQUIRE_SHARED makes its absence an error.
    """
    folder = shared_folder()
    if not folder.is_dir():
        message = f"the shared data are not at {folder} (set BFREPLAY_SHARED to where they are)"
        if os.environ.get("BFREPLAY_REQUIRE_SHARED"):
            pytest.fail(message)
        pytest.skip(message)
    return folder


# files of long tests: begun first, so that at the end no worker has one of them before it while the other is done
BEGUN_FIRST = (
    "test_shockwave_parity.py",
    "test_gavel_parity.py",
    "test_elasticflow_parity.py",
    "test_bftrainer_parity.py",
    "test_docs.py",
    "test_docs_site.py",
    "test_page_in_browser.py",
    "test_real_slurm.py",
    "test_published_decisions_by_milp.py",
    "test_dask_cluster.py",
    "test_killed_sweeps.py",
    "test_on_summit.py",
    "test_code_in_files.py",
)


_UNKNOWN = pytest.StashKey[list[str]]()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put the files of long tests first; the rest stay in order, as fixtures of a module need.

    Of a test that is marked ``often``, parameters that the mark does not name become ``slow``.
    """
    rank = {name: k for k, name in enumerate(BEGUN_FIRST)}
    items.sort(key=lambda item: rank.get(item.path.name, len(rank)))
    unseen: dict[str, set[str]] = {}
    for item in items:
        if (often := item.get_closest_marker("often")) is not None:
            test, name = item.nodeid.split("[")[0], item.callspec.id
            unseen.setdefault(test, set(often.args)).discard(name)
            if name not in often.args:
                item.add_marker("slow")
    config.stash[_UNKNOWN] = [f"{test}[{name}]" for test, names in unseen.items() for name in sorted(names)]


@pytest.fixture
def unknown_parameters(pytestconfig: pytest.Config) -> list[str]:
    """Parameters that a mark ``often`` names and that its test does not have, of all tests that were collected."""
    return pytestconfig.stash[_UNKNOWN]


# No test measures time; and CI tries the same examples each time, so that what lands does not depend on luck. How many
# are tried is for 100 that a test says (tests/examples.py); `make test-all` has the profile "thorough".
IN_CI = bool(os.environ.get("CI"))
settings.register_profile("default", deadline=None, derandomize=IN_CI, max_examples=30)
settings.register_profile("thorough", deadline=None, derandomize=IN_CI, max_examples=100)
settings.load_profile("default")
