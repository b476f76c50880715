"""pypjrt's conformance harness: a thin client of the C API with a list of checks."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
BUILD = pathlib.Path(os.environ.get("MINIPOD_BUILD", ROOT / "build"))

# What minipod does not support; everything else must pass.
MISSING = {
    "abi.unknown_slot_is_clean_error",  # nothing to check: the table has every known slot
    "triton.compile",
    "abi_version.extension_present",
    "abi_version.executable_proto",
    "abi_version.is_compatible_with_executable",
    "stream.external_ready_events",
}


# `python -m pypjrt.conform` gives every plugin with a TpuTopology extension the create options of GPUs.
SCRIPT = """
import json, sys
from pypjrt import Plugin, conform
report = conform.run(Plugin(sys.argv[1]), None)
print(conform.render(report, True))
with open(sys.argv[2], "w") as file:
  json.dump(report.to_json(), file)
"""


def test_conformance(tmp_path):
  pytest.importorskip("pypjrt")
  report = tmp_path / "report.json"
  plugin = BUILD / "pjrt_c_api_minipod_plugin.so"
  result = subprocess.run([sys.executable, "-c", SCRIPT, plugin, report], capture_output=True, text=True, timeout=120)
  assert report.exists(), result.stdout + result.stderr
  checks = json.loads(report.read_text())["checks"]
  failed = [check for check in checks if check["result"] == "fail"]
  passed = [check for check in checks if check["result"] == "pass"]
  others = {check["id"] for check in checks if check["result"] not in ("pass", "fail")}
  assert not failed
  assert len(passed) >= 52
  assert others <= MISSING
