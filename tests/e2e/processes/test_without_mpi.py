"""The plugin alone: it links no MPI, opens none, and runs on machines without MPI."""

import glob
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest
import scenario

import minipod

MPI = re.compile(r"mpi\w*\.so|libmpi|libopen-(rte|pal)|libpmix|libmpich", re.IGNORECASE)


def test_the_library_needs_no_mpi_ucx_or_numa():
  out = subprocess.run(["ldd", minipod.library_path()], capture_output=True, text=True, check=True)
  assert "libc.so" in out.stdout
  assert not MPI.search(out.stdout) and "libnuma" not in out.stdout and "libuc" not in out.stdout, out.stdout


def test_alone_nothing_of_mpi_is_touched():
  out = scenario.run("""
      print(jax.pmap(lambda v: jax.lax.psum(v, 'i'), axis_name='i')(np.arange(4.))[0])
      print(open('/proc/self/maps').read())
      """)
  assert out.startswith("6.0\n") and not MPI.search(out), MPI.search(out)


def mpi_files():
  """Files of every MPI that the dynamic linker or the plugin could find."""
  cache = subprocess.run(["ldconfig", "-p"], capture_output=True, text=True).stdout
  paths = {line.split("=>")[1].strip() for line in cache.splitlines() if "=>" in line}
  paths |= set(glob.glob(str(pathlib.Path(minipod.library_path()).parent / "minipod_mpi_*.so")))
  return sorted({os.path.realpath(p) for p in paths if MPI.search(p)})


HIDDEN = """
    set -e
    for file in $FILES; do mount --bind /dev/null "$file"; done
    exec "$@"
    """


def run_hidden(code, **variables):
  """Runs code with empty files in place of every MPI: (return code, output, standard error)."""
  unshare = shutil.which("unshare")
  options = ["--mount"] if os.getuid() == 0 else ["--mount", "--map-root-user"]
  if unshare is None or subprocess.run([unshare, *options, "true"], capture_output=True).returncode:
    pytest.skip("the kernel forbids mount namespaces here")
  env = scenario.environment(4, FILES=" ".join(mpi_files()), **variables)
  done = subprocess.run([unshare, *options, "sh", "-c", HIDDEN, "sh", sys.executable, "-c",
                         scenario.PRELUDE + code], env=env, capture_output=True, text=True,
                        timeout=60)
  return done.returncode, done.stdout, done.stderr


WORK = """
import ctypes
for name in ('libmpi.so.40', 'libmpi.so.12'):
  try:
    ctypes.CDLL(name)
  except OSError:
    pass
  else:
    raise AssertionError(name + ' is there')
print(jax.process_count(), jax.pmap(lambda v: jax.lax.psum(v, 'i'), axis_name='i')(np.arange(4.))[0])
"""


def test_runs_where_no_mpi_can_be_found():
  returncode, out, err = run_hidden(WORK)
  assert (returncode, out) == (0, "1 6.0\n"), err


def test_a_launcher_without_a_usable_mpi_is_an_error():
  seen = {"OMPI_COMM_WORLD_RANK": 0, "OMPI_COMM_WORLD_SIZE": 2, "OMPI_COMM_WORLD_LOCAL_RANK": 0,
          "OMPI_COMM_WORLD_LOCAL_SIZE": 2}
  returncode, out, err = run_hidden(WORK, **seen)
  assert returncode == 1 and out == "", out
  assert "MPI" in err and "MINIPOD_BOOTSTRAP=none" in err, err
  returncode, out, err = run_hidden(WORK, MINIPOD_BOOTSTRAP="none", **seen)
  assert (returncode, out) == (0, "1 6.0\n"), err
