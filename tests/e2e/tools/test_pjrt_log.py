"""The plugin that logs calls (tools/pjrt_log) between JAX and minipod."""

import os
import pathlib
import re
import subprocess
import sys

import minipod
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
LOG = pathlib.Path(os.environ.get("MINIPOD_BUILD", ROOT / "build")) / "pjrt_log.so"
PLUGIN = pathlib.Path(minipod.__file__).parent / "pjrt_c_api_minipod_plugin.so"
LINE = re.compile(r" *(\d+\.\d{6})  t(\d+) +(\d+\.\d) us +(\d+)  (\S+)(.*)")

SCRIPT = """
import sys
import jax
from jax._src import xla_bridge
xla_bridge.register_plugin("logged", library_path=sys.argv[1], options={"num_devices": 2})
import jax.numpy as jnp
import numpy as np
x = jax.device_put(np.arange(6, dtype=np.float32).reshape(2, 3))
assert np.asarray(jax.jit(lambda x: x @ x.T)(x))[1, 1] == 50
try:
  jax.jit(lambda x: jax.ffi.ffi_call("no.such.function", jax.ShapeDtypeStruct((), np.float32))())(x)
except Exception as error:
  assert "no.such.function" in str(error)
print("good")
"""


def run(tmp_path, plugin=PLUGIN, script=SCRIPT):
  environment = {**os.environ, "PJRT_LOG_PLUGIN": str(plugin), "PJRT_LOG_FILE": str(tmp_path / "calls.%p.txt"),
                 "JAX_PLATFORMS": "logged"}
  done = subprocess.run([sys.executable, "-c", script, str(LOG)], env=environment, capture_output=True, text=True,
                        timeout=120)
  logs = list(tmp_path.glob("calls.*.txt"))
  return done, logs[0].read_text() if logs else ""


def test_calls_are_logged(tmp_path):
  done, log = run(tmp_path)
  assert done.stdout == "good\n", done.stderr
  lines = [LINE.fullmatch(line) for line in log.splitlines() if not line.startswith("#")]
  assert all(lines)
  calls = [line[5] for line in lines]
  rest = {line[5]: line[6] for line in lines if "ERROR" not in line[6]}
  assert rest["PJRT_Client_Create"] == " options num_devices"
  assert rest["PJRT_Client_BufferFromHostBuffer"] == " type 11 [2,3]"
  assert re.fullmatch(r" mlir of \d+ bytes, options of \d+ bytes", rest["PJRT_Client_Compile"])
  assert rest["PJRT_LoadedExecutable_Execute"].startswith(" 1 devices, 1 arguments")
  assert calls.count("PJRT_Client_Create") == 1
  assert "Layouts.Client_GetDefaultLayout" in calls and "Shardings.Executable_OutputShardings" in calls
  assert calls.index("PJRT_Client_Create") < calls.index("PJRT_Client_Compile")
  assert float(lines[-1][1]) > float(lines[0][1])


def test_errors_and_sums(tmp_path):
  done, log = run(tmp_path)
  assert done.stdout == "good\n", done.stderr
  assert re.search(r"PJRT_Client_Compile mlir of .*  ERROR 12: .*'no\.such\.function' is not known", log)
  sums = re.findall(r"^# +(\d+) calls +([\d.]+) ms +(\d+) errors  (\S+)$", log, re.M)
  times = [float(ms) for _, ms, _, _ in sums]
  assert times == sorted(times, reverse=True) and times[0] > 0
  by_name = {name: (int(calls), int(errors)) for calls, _, errors, name in sums}
  calls = [LINE.fullmatch(line)[5] for line in log.splitlines() if not line.startswith("#")]
  assert sum(count for count, _ in by_name.values()) == len(calls)
  assert by_name["PJRT_Client_Compile"] == (calls.count("PJRT_Client_Compile"), 1)


@pytest.mark.parametrize("plugin, text", [("/nowhere/plugin.so", "pjrt_log: /nowhere/plugin.so: cannot open"),
                                          (str(ROOT / "README.md"), "pjrt_log: .*README.md")])
def test_a_plugin_that_cannot_be_loaded_is_named(tmp_path, plugin, text):
  done, _ = run(tmp_path, plugin)
  assert done.returncode != 0 and re.search(text, done.stderr)
