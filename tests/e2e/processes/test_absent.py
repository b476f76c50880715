"""One process that stands for all processes of its job: the same times and memory, no other process, no wrong value."""

import subprocess
import sys
import tempfile

import pytest
import scenario

STEP = """
import jax, jax.numpy as jnp, numpy as np
{before}
from jax.experimental import multihost_utils
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
import minipod
mesh = Mesh(np.array(jax.devices()), ("d",))
over, every = NamedSharding(mesh, P("d")), NamedSharding(mesh, P())
x = jax.jit(lambda: jnp.ones((16384, 1024)), out_shardings=over)()
total = jax.jit(lambda x: (x.T @ x).sum(), out_shardings=every)(x)
jax.block_until_ready(total)
multihost_utils.sync_global_devices("here")
if jax.process_index() == {rank}:
  print(jax.process_index(), jax.process_count(), len(jax.devices()), jax.local_devices()[0].coords)
  print(minipod.virtual_time(), jax.local_devices()[0].memory_stats()["peak_bytes_in_use"])
"""
SHAPES = {"MINIPOD_TOPOLOGY": "v6e:4x4", "MINIPOD_TIME": "model", "MINIPOD_VALUES": "shapes"}


def job(code, *words, count=4, **variables):
  """The exit code and the output of `minipod run` with a script."""
  with tempfile.NamedTemporaryFile("w", suffix=".py") as script:
    script.write(code)
    script.flush()
    done = subprocess.run([sys.executable, "-m", "minipod", "run", "-n", str(count), "--no-prefix", *words, script.name],
                          capture_output=True, text=True, timeout=120,
                          env={**scenario.environment(devices=None), **SHAPES, **variables})
  return done.returncode, done.stdout + (done.stderr if done.returncode else "")


@pytest.mark.parametrize("rank, before", [(0, ""), (2, ""), (0, "jax.distributed.initialize()")])
def test_times_and_memory_are_those_of_all_processes(rank, before):
  code, all_of_them = job(STEP.format(rank=rank, before=""), "--launcher", "plain")
  assert code == 0, all_of_them
  assert job(STEP.format(rank=rank, before=before), "--only", str(rank)) == (0, all_of_them)


def test_values_of_the_others_are_theirs_if_all_are_equal():
  """A sum of what all bring is known; a part of it is not, because each process has another one."""
  code, out = job("""
import jax, numpy as np
x = np.ones((len(jax.local_devices()), 4), np.float32)
print(jax.pmap(lambda x: jax.lax.psum(x, "i"), axis_name="i")(x)[0])
try:
  print(jax.pmap(lambda x: jax.lax.ppermute(x, "i", [(i, (i + 1) % 4) for i in range(4)]), axis_name="i")(x)[0])
except Exception as error:
  print("this array has no values" in str(error))
""", "--only", "1", MINIPOD_TOPOLOGY="v6e:2x2")
  assert (code, out) == (0, "[4. 4. 4. 4.]\nTrue\n")


def test_broadcasts_have_the_values_of_their_source():
  """JAX makes a broadcast of a sum, to which all processes but the source bring zeros."""
  code, out = job("""
import jax, numpy as np
from jax.experimental import multihost_utils
print(multihost_utils.broadcast_one_to_all(np.float32(7), is_source=True))
try:
  print(multihost_utils.broadcast_one_to_all(np.float32(7)))
except Exception as error:
  print("this array has no values" in str(error))
""", "--only", "1", MINIPOD_TOPOLOGY="v6e:2x2")
  assert (code, out) == (0, "7.0\nTrue\n")


@pytest.mark.parametrize("variables, message", [
    ({"MINIPOD_VALUES": "real"}, "MINIPOD_BOOTSTRAP (environment variable): absent needs the option values: shapes"),
    ({"MINIPOD_TOPOLOGY": "v6e:2x2"}, "8 processes"),
])
def test_refusals(variables, message):
  code, out = job("import jax; jax.devices()", "--only", "0", count=8, **variables)
  assert code == 1 and message in out


def test_nothing_describes_the_job():
  done = subprocess.run([sys.executable, "-c", "import jax; jax.devices()"], capture_output=True, text=True, timeout=60,
                        env={**scenario.environment(devices=None), **SHAPES, "MINIPOD_BOOTSTRAP": "absent"})
  assert "the number of processes that this one stands for is unknown" in done.stderr


def test_another_number_of_processes():
  code, out = job("import jax; jax.distributed.initialize(num_processes=8)", "--only", "0")
  assert code == 1 and "TPU_PROCESS_ADDRESSES lists 4 and initialize() names 8: start it by 'minipod run" in out


def test_initialize_without_a_job():
  err = scenario.run("import jax; jax.distributed.initialize()", devices=None, prelude="", fails=True,
                     MINIPOD_BOOTSTRAP="absent", **SHAPES)
  assert "TPU_PROCESS_ADDRESSES lists 0: start it by 'minipod run" in err


def test_the_process_is_one_of_them():
  code, out = job("", "--only", "4")
  assert code == 2 and "--only 4: the processes are 0 to 3" in out
