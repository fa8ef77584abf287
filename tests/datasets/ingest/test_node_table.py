"""Tables of nodes: CSV, and ``scontrol show node`` on one line a node or several."""

import pytest

from bfreplay.datasets.ingest.node_table import MOST_UNITS, NodeRow, NodeTable, tres_counts
from bfreplay.errors import InputError

ONE_LINE = (
    "NodeName=g1 Arch=x86_64 CPUAlloc=0 CPUEfctv=62 CPUTot=64 Gres=gpu:a100:4(S:0-1),shard:8 OS=Linux 6.1 #1 SMP "
    "State=IDLE Partitions=gpu,all BootTime=None CfgTRES=cpu=62,mem=1G,gres/gpu=4 Comment=Gres=gpu:9 Reason=x\n"
    "NodeName=g2 CPUTot=32 Gres=gpu:a100_1g.5gb:7(IDX:0-6),gpu:v100:2 State=IDLE Partitions=gpu CfgTRES=cpu=32\n"
    "NodeName=g3 CPUTot=32 Gres=gpu:4 State=IDLE CfgTRES=cpu=32\n"
    "NodeName=g4 Gres=(null) State=IDLE CfgTRES=cpu=8,gres/gpu:h100=2\n"
    "NodeName=c1 CPUTot=16 Gres=(null) State=DOWN Partitions=all CfgTRES=cpu=16\n"
)


def load(folder, text):
    (folder / "units").write_text(text)
    return NodeTable.load(folder / "units")


def test_scontrol_show_node_on_one_line_a_node(tmp_path):
    assert load(tmp_path, ONE_LINE).rows == {
        "g1": NodeRow(4, 62, "a100", ("gpu", "all")),  # two cores are kept for the system
        "g2": NodeRow(9, 32, "a100_1g.5gb", ("gpu",)),
        "g3": NodeRow(4, 32, "gpu"),
        "g4": NodeRow(2, 8, "gpu"),  # Gres is empty: by CfgTRES
        "c1": NodeRow(0, 16, "cpu", ("all",)),
    }


def test_scontrol_show_node_on_several_lines_a_node(tmp_path):
    text = ONE_LINE.replace("CPUTot=", "\n   CPUTot=").replace("State=", "\n   State=").replace("\nNode", "\n\nNode")
    assert load(tmp_path, text).rows == load(tmp_path, ONE_LINE).rows


def test_a_table_with_lists_of_nodes(tmp_path):
    text = '# mine\nnode,gpus,cores,type,partitions\n"n[1-2,4]",4,64,v100,gpu;all\nlogin,,0,,\n'
    node = NodeRow(4, 64, "v100", ("gpu", "all"))
    table = load(tmp_path, text)
    assert table.rows == {"n1": node, "n2": node, "n4": node, "login": NodeRow(None, 0)}
    assert table.units("core") == [64, 64, 64, 0]
    with pytest.raises(InputError, match="nodes have no number of GPUs") as caught:
        table.units("gpu")
    assert caught.value.value == "login"
    with pytest.raises(InputError, match="too many cores together"):
        load(tmp_path, "node,cores\nn[1-1000],65536\n").units("core")


@pytest.mark.parametrize(
    ("text", "problem", "row"),
    [
        ("node,gpus\nn[1,2],4\n", "a row has another number of cells", "line 2"),
        ('node,gpus\n"n[1-2",4\n', "not a node or list of nodes", "line 2"),
        ("node,gpus\nn1,4\nn2,four\n", "no number of units", "line 3"),
        ("node,gpus\nn1,-4\n", "no number of units", "line 2"),
        (f"node,gpus\nn1,{MOST_UNITS + 1}\n", "no number of units", "line 2"),
        ("node,gpus\nn1,4\nn1,4\n", "a node has two rows", "line 3"),
        ("host,gpus\nn1,4\n", "this is no table of nodes", "line 1"),
        ("node\nn1\n", "this is no table of nodes", "line 1"),
        ("node,gpus\n", "the file names no node", None),
        ("", "this is no table of nodes|cannot be split", "line 1"),
        ("NodeName=n1 CPUTot=4 Gres=gpu:1", "the text is cut", None),
        ("NodeName= CPUTot=4\n", "not the name of a node", "node 1"),
        (f"NodeName=n1 CPUTot={MOST_UNITS + 1}\n", "no number of units", "node 1"),
        ("NodeName=n1 CPUTot=4 Gres=gpu:999999\n", "no number of units", "node 1"),
    ],
)
def test_what_is_no_table_is_refused_with_its_place(tmp_path, text, problem, row):
    with pytest.raises(InputError, match=problem) as caught:
        load(tmp_path, text)
    assert caught.value.row == row


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        ("billing=24,cpu=24,gres/gpu:a100=2,gres/gpu=2,mem=9G,node=1", (2, 24)),
        ("cpu=8,gres/gpu:a100=2,gres/gpu:v100=1", (3, 8)),
        ("cpu=8,gres/gpumem=80G,gres/gpuutil=5,gres/shard=4,fs/cpu=9", (None, 8)),
        ("", (None, None)),
    ],
)
def test_gpus_and_cores_of_a_list_of_resources(text, counts):
    assert tres_counts(text) == counts


def test_gpus_whose_sockets_have_commas_are_all_counted_and_unreadable_ones_are_refused(tmp_path):
    file = tmp_path / "nodes.txt"
    text = (
        "NodeName=cn1 Arch=x86_64 CoresPerSocket=8\n   CPUAlloc=0 CPUTot=16\n   Gres={}\n   State=IDLE Partitions=a\n"
    )
    for gres, gpus, node_type in (
        ("gpu:a100:2(S:0,3),gpu:v100:2(S:1)", 4, "a100"),
        ("gpu:a100:4(S:0,2),shard:a100:8(S:0,2)", 4, "a100"),
        ("gpu:tesla:no_consume:2", 2, "tesla"),
        ("gpu:3", 3, "gpu"),
    ):
        file.write_text(text.format(gres))
        row = NodeTable.load(file).rows["cn1"]
        assert (row.gpus, row.type) == (gpus, node_type)
    file.write_text(text.format("gpu:a100:many"))
    with pytest.raises(InputError, match="these GPUs cannot be read"):
        NodeTable.load(file)


def test_parts_of_gpus_do_not_say_how_many_gpus_a_job_holds():
    assert tres_counts("cpu=4,gres/shard=8") == (None, 4)
    assert tres_counts("cpu=4,gres/mps:a100=50,node=1") == (None, 4)
    assert tres_counts("cpu=4,gres/gpu=2,gres/shard=8") == (2, 4)
    assert tres_counts("cpu=4,gres/shard=0") == (0, 4)
