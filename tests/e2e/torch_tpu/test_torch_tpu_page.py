"""The programs of the page "PyTorch on TPUs without TPUs" print what the page shows, on standard output."""

import pathlib
import subprocess
import sys

import pytest
import scenario
import torch_tpu_scenario

SITE = pathlib.Path(__file__).parents[3] / "tools/site"
sys.path.insert(0, str(SITE))

import blocks

PAGE = blocks.read((SITE / "pages/torch_tpu.md").read_text())
COMMANDS = [command for block in PAGE if block.kind == "console" for command, _ in block.commands()]


def execute(command, folder):
  """The output of a command without TorchTPU's log, which goes to the other stream."""
  process = scenario.start_shell(command, folder, torch_tpu_scenario.environment(None), stderr=subprocess.DEVNULL)
  return scenario.finish(process, timeout=200)[1]


@pytest.mark.parametrize("command", COMMANDS)
def test_program(command, tmp_path):
  chosen = [block for block in PAGE if block.file is not None or command in [each for each, _ in block.commands()]]
  [(block, _, told, printed)] = blocks.run(chosen, tmp_path, execute)
  assert blocks.agree(told, printed, block.has_times), f"$ {command}{blocks.difference(told, printed)}\n{printed}"
