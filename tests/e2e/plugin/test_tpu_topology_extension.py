"""The TpuTopology extension (16) answers what libtpu answers.

tests/fixtures/tpu/topology_slots.py asks both; topology_slots.json has libtpu's answers.
"""

import importlib.util
import json
import os
import pathlib

import minipod
import pytest

FOLDER = pathlib.Path(__file__).parents[2] / "fixtures/tpu"
SPEC = importlib.util.spec_from_file_location("topology_slots", FOLDER / "topology_slots.py")
slots = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(slots)
RECORD = json.loads((FOLDER / "topology_slots.json").read_text())


@pytest.fixture(scope="module")
def plugin():
  return slots.Plugin(os.path.join(os.path.dirname(minipod.__file__), "pjrt_c_api_minipod_plugin.so"))


def without_texts(answer):
  """The answer without the texts of errors, which are minipod's own."""
  if isinstance(answer, dict):
    return {key: key if key == "error" else without_texts(value) for key, value in answer.items()}
  return [without_texts(each) for each in answer] if isinstance(answer, list) else answer


def same(found, recorded):
  return without_texts(json.loads(json.dumps(found))) == without_texts(recorded)


@pytest.mark.parametrize("name", RECORD["topologies"])
def test_every_topology(plugin, name):
  assert same(slots.ask(plugin, plugin.topology(name)), RECORD["topologies"][name])


@pytest.mark.parametrize("number", range(len(slots.PARTS)))
def test_parts(plugin, number):
  assert same(slots.attempt(slots.ask_part, plugin, *slots.PARTS[number]), RECORD["parts"][number])


def test_other_hosts_slices_and_platforms(plugin):
  found = slots.ask_all(plugin)
  for key in ("replaced", "slice", "slices", "platform"):
    assert same(found[key], RECORD[key]), key


def fails(text, function, *args):
  with pytest.raises(slots.Failure, match=text):
    function(*args)


def test_errors(plugin):
  """libtpu ends the process for some of these."""
  topology = plugin.topology("v6e:4x4")
  fails("Invalid chip id: 99, there are 16", slots.ask_one, plugin, "proc_id_and_idx_on_proc_for_chip", topology, (99,))
  fails("Invalid device id: -1", slots.ask_one, plugin, "proc_id_and_idx_on_proc_for_logi_device", topology, (-1,))
  fails("Invalid process id: 4", slots.ask_list, plugin, "process_coord_from_id", topology, (4,), 6)
  fails("`max_process_ids` must be >= 4, got 2", slots.ask_list, plugin, "process_ids", topology, (), 2)
  fails("must be >= 4, got 3", slots.ask_list, plugin, "logical_device_ids_on_process", topology, (0,), 3)
  fails("must be >= 3, got 2", slots.ask_list, plugin, "chip_bounds", topology, (), 2)
  fails("Invalid chip: 0,4,0", slots.ask_at, plugin, "chip_id_from_coord", topology, (0, 4, 0))
  fails("Expected 3 or 4 dimensions, got 2", slots.ask_at, plugin, "chip_id_from_coord", topology, (0, 0))
  fails("Invalid core index: 1", slots.ask_at, plugin, "logical_device_id_from_chip_coord_and_idx", topology,
        (1, 1, 0), 1)
  fails("`max_slice_configs` must be >= 446, got 7", slots.ask_slices, plugin, "tpu7x", 7)
  fails("TpuTopology_ChipCount: topology is NULL", slots.ask_one, plugin, "chip_count", None)
  part = slots.ask_subslice(plugin, topology, (2, 2, 1), (1, 1, 1))
  fails("device 0 is not in the subslice at 2,2,0", slots.ask_device_of_subslice, plugin, topology, part, (2, 2, 0), 0)
  gpus = plugin.topology("h100:8")
  fails("which are not TPUs", slots.ask_one, plugin, "chip_count", gpus)


def test_several_slices(plugin):
  """Chips are numbered slice by slice, and so are processes."""
  topology = plugin.topology("v5e:2x4 slices:2")
  answers = slots.ask(plugin, topology)
  assert (answers["chip_count"], answers["process_count"], answers["chip_bounds"]) == (16, 4, [2, 4, 1])
  assert answers["process_bounds"] == [1, 2, 1]
  assert [*answers["process_coord_from_id"]] == 2 * [[0, 0, 0], [0, 1, 0]]
  assert slots.ask_one(plugin, "proc_id_and_idx_on_proc_for_chip", topology, (15,)) == [3, 3]
