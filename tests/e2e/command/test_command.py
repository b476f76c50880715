"""The command `minipod`: its verbs, their exit codes, and what they print."""

import json
import os
import shutil
import subprocess
import sys
import time

import pytest
import scenario
from minipod.command import installation
from minipod.command import top


def minipod(*words, code=0, variables=None):
  """The process of a command, which has ended with the exit code."""
  done = subprocess.run([sys.executable, "-m", "minipod", *map(str, words)], capture_output=True, text=True,
                        timeout=300, env={**scenario.environment(devices=None), **(variables or {})})
  assert done.returncode == code, done.stdout + done.stderr
  return done


def test_help_and_versions():
  verbs = [line.split()[0] for line in minipod("--help").stdout.splitlines() if line.startswith("  ")]
  assert {"topo", "network", "info", "doctor", "run", "opt", "partition"} <= set(verbs)
  version = minipod("--version").stdout
  for verb in ("topo", "network", "opt", "partition"):
    assert minipod(verb, "--help").stdout.startswith(f"usage: minipod {verb} ")
  assert minipod("topo", "--version").stdout.split()[-1] == version.split()[-1] and version.startswith("minipod ")
  assert minipod("run", "--help").stdout.startswith("usage: minipod run ")


def test_a_mistake_is_a_line_and_exit_code_2():
  assert minipod("topoo", code=2).stderr == "minipod: there is no verb 'topoo': did you mean 'topo'?\n"
  assert minipod("topo", "--nothing", code=2).stderr == (
      "minipod topo: unexpected argument '--nothing'; 'minipod topo --help' lists the arguments\n")
  assert "cannot open topology file 'no.yaml'" in minipod("topo", "no.yaml", code=1).stderr
  assert minipod("opt", "no.mlir", code=1).stderr == (
      "minipod opt: cannot open 'no.mlir': No such file or directory\n")


@pytest.mark.parametrize("words, message", [
    ("partition", "FILE is missing"),
    ("partition --devices", "--devices needs a value: a number from 1 to 65536"),
    ("partition --devices 0 a", "--devices takes a number from 1 to 65536, not '0'"),
    ("partition --form xla a", "--form takes mlir, hlo or hlo_with_config, not 'xla'"),
    ("partition a b", "unexpected argument 'b'"),
    ("opt --generic", "FILE is missing"),
    ("opt --form=xla a", "--form takes mlir, hlo or hlo_with_config, not 'xla'"),
    ("opt --elide=few a", "--elide takes a number from 0 to 4294967295, not 'few'"),
    ("exec --seed -1 a", "--seed takes a number from 0 to 9223372036854775807, not '-1'"),
    ("exec --tolerance", "--tolerance needs a value: a number from 0"),
    ("exec --seed 1", "FILE is missing"),
    ("exec --sed 1 a", "unexpected argument '--sed'"),
    ("network", "POD is missing"),
    ("network v5e:4x4", "COLLECTIVE is missing"),
    ("network v5e:4x4 all_reduce", "BYTES is missing"),
    ("network v5e:4x4 all_reduce 1MiB ring tree", "unexpected argument 'tree'"),
    ("options all", "unexpected argument 'all'"),
    ("topo --svg -m", "--svg cannot be combined with --json or --matrix"),
    ("topo --loads no.txt", "--loads needs --svg"),
])
def test_usage_errors_say_what_is_wrong(words, message):
  verb = words.split()[0]
  assert minipod(*words.split(), code=2).stderr == (
      f"minipod {verb}: {message}; 'minipod {verb} --help' lists the arguments\n")


def test_distances_and_links():
  far = json.loads(minipod("topo", "-m", "--json", "v5e:4x2").stdout)
  assert far["hops"][0] == [0, 1, 2, 3, 1, 2, 3, 4]
  assert far["bandwidth"][0][0] is None and far["bandwidth"][0][7] == far["bandwidth"][0][1] > 1e9
  assert minipod("topo", "-m", "torus:2").stdout.splitlines()[:3] == [
      "hops", "            0      1", "     0      -      1"]
  pod = json.loads(minipod("topo", "v5e:4x4", "--json").stdout)
  assert pod["num_devices"] == 16 == len(pod["devices"]) and pod["devices"][5]["coords"] == [1, 1, 0]
  assert {link["name"] for link in pod["links"]} >= {"slice 0 (0,0,0) +x", "slice 0 (3,3,0) -y"}


def test_a_size_may_be_two_words():
  one = minipod("network", "h100:8", "all_reduce", "64MiB")
  assert one.returncode == 0 and minipod("network", "h100:8", "all_reduce", "64", "MiB").stdout == one.stdout
  ring = minipod("network", "h100:8", "all_reduce", "64", "MiB", "ring").stdout
  assert ring == minipod("network", "h100:8", "all_reduce", "64MiB", "ring").stdout and ring.startswith("ring ")
  assert "'MiX' is unknown" in minipod("network", "h100:8", "all_reduce", "64", "MiX", code=1).stderr


def test_what_is_here():
  facts = json.loads(minipod("info", "--json", variables={"MINIPOD_TOPOLOGY": "v5e:2x2"}).stdout)
  assert facts["pod"]["num_devices"] == 4
  options = {row["variable"]: row for row in facts["options"]}
  assert options["MINIPOD_TOPOLOGY"]["value"] == "v5e:2x2"
  assert options["MINIPOD_TOPOLOGY"]["source"] == "environment"
  assert options["MINIPOD_FUSE"] | {"help": ""} == {
      "name": "fuse", "variable": "MINIPOD_FUSE", "type": "int", "default": "1", "unit": "", "value": "1",
      "source": "default", "help": ""}
  numa = facts["libnuma"]
  assert numa["by"] == "libnuma.so.1" if numa["is_there"] else numa["by"].startswith("system calls ("), numa
  assert "did you mean MINIPOD_TOPOLOGY?" in minipod("info", variables={"MINIPOD_TOPOLGY": "v5e:2x2"}).stderr


def test_the_doctor_finds_what_is_wrong():
  found = json.loads(minipod("doctor", "--json", variables={
      "MINIPOD_TOPOLGY": "v5e:2x2", "XLA_FLAGS": "--xla_force_host_platform_device_count=8"}).stdout)
  notes = " ".join(each["text"] for each in found if each["state"] == "note")
  assert "did you mean MINIPOD_TOPOLOGY?" in notes and "is for JAX's CPU" in notes
  bad = json.loads(minipod("doctor", "--json", code=1, variables={"MINIPOD_TOPOLOGY": "v5e:2"}).stdout)
  assert [each["what"] for each in bad if each["state"] == "bad"] == ["options"]


def test_the_manual_and_completion_have_all_verbs(tmp_path):
  manual = minipod("man").stdout
  verbs = [line.split()[0] for line in minipod("--help").stdout.splitlines() if line.startswith("  ")]
  assert [line[4:] for line in manual.splitlines() if line.startswith(".SS ")] == verbs
  assert manual.count("usage: ") == len(verbs)
  script = tmp_path / "minipod.bash"
  script.write_text(minipod("completion", "bash").stdout)
  complete = (f"source {script}; COMP_WORDS=({{words}}); COMP_CWORD={{at}}; _minipod;"
              ' echo "${{COMPREPLY[@]}}"')
  for words, at, wanted in (("minipod ru", 1, "run"), ("minipod topo --sv", 2, "--svg"),
                            ("minipod sweep --p", 2, "--pod")):
    done = subprocess.run(["bash", "-c", complete.format(words=words, at=at)], capture_output=True, text=True)
    assert done.stdout.split()[:1] == [wanted], done
  assert minipod("completion", "zsh").stdout.startswith("#compdef minipod")
  assert "-l launcher" in minipod("completion", "fish").stdout
  minipod("completion", "tcsh", code=2)


WAITING = """
import jax, jax.numpy as jnp, numpy as np, sys, time
x = jax.device_put(np.ones((4, 1 << 18), np.float32), jax.sharding.PositionalSharding(jax.devices()).reshape(4, 1)
                   if hasattr(jax.sharding, "PositionalSharding") else
                   jax.NamedSharding(jax.make_mesh((4,), ("x",)), jax.P("x")))
def wait(y):
  print("there", flush=True)
  sys.stdin.readline()
  return y
f = jax.pmap(lambda y: jax.lax.psum(jax.lax.cond(jax.lax.axis_index("i") == 0,
             lambda y: jax.pure_callback(wait, y, y), lambda y: y, y), "i"), axis_name="i")
y = f(np.arange(4.0))
print(y[0])
"""


def test_top_shows_what_runs_and_waits():
  process = subprocess.Popen([sys.executable, "-c", WAITING], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             text=True, env=scenario.environment(devices=4))
  try:
    assert process.stdout.readline() == "there\n"
    deadline = time.monotonic() + 60
    while True:  # until the others have reached the sum
      (said,) = json.loads(minipod("top", "--json", process.pid).stdout)
      devices = said["clients"][0]["devices"]
      states = [device["state"] for device in devices]
      if states.count("waiting") == 3 or time.monotonic() > deadline:
        break
    assert states == ["running", "waiting", "waiting", "waiting"], said
    assert all(device["program"].startswith("jit__") for device in devices)
    assert devices[1]["at"].startswith("stablehlo.all_reduce (psum"), said
    assert all(device["bytes"] >= 1 << 20 and device["limit"] > device["peak"] >= device["bytes"] for device in devices)
    text = minipod("top", "--once", process.pid).stdout
    assert text.startswith(f"process {process.pid}: ") and " waiting at stablehlo.all_reduce" in text
    out, _ = process.communicate("\n", timeout=300)
    assert out.strip() == "6.0"
  finally:
    process.kill()
  assert "none of them answers" in minipod("top", "--once", process.pid, code=1).stderr


def test_mpirun_and_its_library_are_of_one_mpi(tmp_path, monkeypatch):
  for name, kind in (("orterun", "ompi"), ("mpirun.openmpi", "ompi"), ("mpiexec.hydra", "mpich"), ("mine", None)):
    (tmp_path / name).write_text("")
    (tmp_path / "mpirun").unlink(missing_ok=True)
    (tmp_path / "mpirun").symlink_to(tmp_path / name)
    assert installation._mpi_of(str(tmp_path / "mpirun")) == kind
  monkeypatch.setattr(installation, "_mpi_of", lambda launcher: "another")
  if shutil.which("mpirun"):
    is_there, why = installation.mpi()
    assert not is_there and ("no module for the MPI of" in why or "no module for MPI" in why)


def test_top_says_since_when():
  look = lambda program: {"pid": 1, "clients": [{"devices": [
      {"id": 0, "state": "waiting", "program": program, "at": "psum", "launches": 3}]}]}
  seconds = []
  memory = top.Memory()
  for said, now in ((look("a"), 10), (look("a"), 12.5), (look("b"), 13), (look("b"), 15)):
    memory.note(said, now)
    seconds.append(said["clients"][0]["devices"][0].get("seconds"))
  assert seconds == [None, 2.5, None, 2]
  assert top._does(said["clients"][0]["devices"][0]) == ("waiting at psum for 2 s", "b")


PROGRAM = """
module @jit_f attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["x"=4]>
  func.func public @main(%arg0: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>},
                         %arg1: tensor<16x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>})
      -> tensor<8x4xf32> {
    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0]
        : (tensor<8x16xf32>, tensor<16x4xf32>) -> tensor<8x4xf32>
    return %0 : tensor<8x4xf32>
  }
}
"""


def test_a_program_is_divided(tmp_path):
  file = tmp_path / "p%s.mlir"
  file.write_text(PROGRAM)
  lines = minipod("partition", file).stdout.splitlines()
  assert lines[0] == "// 4 partitions; communication: 1 ops, 192 bytes to each device"
  assert any("stablehlo.all_reduce" in line for line in lines)
  assert "all_reduce" in minipod("partition", "--commands", file).stdout
  file.write_text("module {")
  assert minipod("partition", file, code=1).stderr.startswith(f"minipod partition: {file}: ")
  assert minipod("opt", file, code=1).stderr.startswith(f"minipod opt: {file}: ")


SCRIPT = """
import sys, time, jax, numpy as np
f = jax.pmap(lambda x: x + jax.lax.psum(x, "i"), axis_name="i")
print(jax.process_index(), *f(np.array([device.id for device in jax.local_devices()])))
if len(sys.argv) > 1 and jax.process_index() == 1:
  if sys.argv[1] == "kill":
    import os, signal
    os.kill(os.getpid(), signal.SIGKILL)
  sys.exit(int(sys.argv[1]))
if len(sys.argv) > 1:
  f(np.array([device.id for device in jax.local_devices()])).block_until_ready()
"""


@pytest.mark.parametrize("launcher", ["mpirun", "plain"])
def test_processes_share_a_pod(tmp_path, launcher):
  if launcher == "mpirun" and os.environ.get("MINIPOD_TEST_NO_MPI"):
    pytest.skip("no MPI here")
  script = tmp_path / "script.py"
  script.write_text(SCRIPT)
  started = "run", "-n", 2, "--devices", 2, "--launcher", launcher, script
  assert sorted(minipod(*started).stdout.splitlines()) == ["[0] 0 6 7", "[1] 1 8 9"]
  minipod(*started, "kill", code=137)
  failed = minipod(*started, 3, code=3)
  assert "[1] minipod: rank 1" in failed.stderr + failed.stdout


def test_what_cannot_be_run(tmp_path):
  assert "there is no script 'no.py'" in minipod("run", "no.py", code=1).stderr
  assert "a script is missing" in minipod("run", code=2).stderr
