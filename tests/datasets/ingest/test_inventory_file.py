import gzip

import pytest

from bfreplay.datasets.ingest.read_log import read_inventory
from bfreplay.errors import InputError


def test_names_and_lists_and_comments(tmp_path):
    path = tmp_path / "nodes.txt"
    path.write_text("# our machine\ncn[01-03]\nlogin1\n gpu1,gpu2  # two racks\n\ncn02\n")
    assert read_inventory(path) == ("cn01", "cn02", "cn03", "login1", "gpu1", "gpu2")
    packed = tmp_path / "nodes.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert read_inventory(packed) == read_inventory(path)


def test_junk_is_refused_with_its_line(tmp_path):
    path = tmp_path / "nodes.txt"
    path.write_text("cn01\ncn[02-\n")
    with pytest.raises(InputError, match="not a node or list of nodes") as caught:
        read_inventory(path)
    assert (caught.value.row, caught.value.value) == ("line 2", "cn[02-")


@pytest.mark.parametrize("line", ["NODELIST", "cn01 idle", "NODE cn01", "HOSTNAMES"])
def test_what_is_more_than_a_name_is_no_node(tmp_path, line):
    path = tmp_path / "nodes.txt"
    path.write_text(f"{line}\ncn01\n")
    with pytest.raises(InputError, match="not a node or list of nodes") as caught:
        read_inventory(path)
    assert caught.value.row == "line 1"


def test_a_file_without_names_is_refused(tmp_path):
    path = tmp_path / "nodes.txt"
    path.write_text("# none\n")
    with pytest.raises(InputError, match="names no node"):
        read_inventory(path)
