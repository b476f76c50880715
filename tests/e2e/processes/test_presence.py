"""Processes that would wait for others that never start get an error, long before JAX's service or a time limit reacts.
"""

import distributed
import pytest

# Each process prints the result of its client, and how long that took; process 0, which has JAX's service, ends last.
SCRIPT = """\
import os, signal, time, jax
me, count = int(os.environ["PROCESS_ID"]), int(os.environ["NUM_PROCESSES"])
BEFORE
jax.config.update("jax_enable_recoverability", True)
jax.distributed.initialize(os.environ["COORDINATOR"], count, me)
AFTER
store = jax._src.distributed.global_state.client
begin = time.monotonic()
try:
  os.write(1, f"well {len(jax.devices())}".encode())
except Exception as error:
  os.write(1, f"{time.monotonic() - begin < 60} {error}".encode())
store.key_value_set(f"over/{me}", str(os.getpid()))
def runs(pid):
  try:
    return open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[0] != "Z"
  except OSError:
    return False
for other in OTHERS if me == 0 else ():
  pid = store.blocking_key_value_get(f"over/{other}", 60000)
  while runs(pid):
    time.sleep(0.05)
os._exit(0)
"""


def run(before="", after="", others="range(1, count)", count=3):
  script = SCRIPT.replace("BEFORE", before).replace("AFTER", after).replace("OTHERS", others)
  return distributed.run(script, 1, count, is_whole=True)


@pytest.mark.parametrize("lists", [["0,1", "0,1,2", "0,1,2"], ["0,1", None]], ids=["two-lists", "no-list"])
def test_processes_that_disagree_on_their_subset(lists):
  job = run(f"own = {lists}[me]\nif own: os.environ['MINIPOD_SUBSET'] = own", count=len(lists))
  for out in job.outs.values():
    assert out.startswith("True ") and "processes disagree on which of them share a pod: process" in out, job.outs
    assert "process 0 chose processes 0,1 (MINIPOD_SUBSET) and waits for process 1" in out, job.outs


def test_a_process_that_is_killed_before_it_has_a_client():
  """JAX's service would notice after 100 s; the library notices after a few, and names the process."""
  job = run(after="if me == 2: os.kill(os.getpid(), signal.SIGKILL)", others="[1]")
  assert job.returncodes == {0: 0, 1: 0, 2: -9}, job.errs
  for process in 0, 1:
    assert job.outs[process].startswith("True ") and "process 2 (pid " in job.outs[process], job.outs
    assert ") has ended before all processes had joined" in job.outs[process], job.outs
