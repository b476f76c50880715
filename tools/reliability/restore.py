#!/usr/bin/env python3
"""orbax's emergency checkpoints with a killed process, over two simulated hosts: the bits of the undisturbed run.

    tools/reliability/restore.py [--rounds 2] [--seed 1] [--python PYTHON]

Needs root, and a Python with minipod and orbax-checkpoint.  Four processes of two hosts, connected by UCX, train on a
mesh whose first axis is the hosts, with a replica on each.  Every second step is saved on the host of the second
replica, and every eighth step in a folder that all hosts see.

In each round one process is killed at a random moment.  The job ends with errors, and is started again.  If the dead
process was on the first host, the second host's checkpoint has to be broadcast.  If it was on the second host, the test
assumes that its disk is lost, so the job has to restore the last checkpoint that all hosts see.  The state after the
last step must have the bits of an undisturbed run, and of a run with one process.
"""

import argparse
import hashlib
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback

from job import Job, join

STEPS = 24
LOCAL, PERSISTENT = 2, 8  # steps between two saves
PROCESSES, PER_HOST, DEVICES = 4, 2, 2
SECONDS = 240


# ---- a process of the job ----


def make_manager(folder, mesh, state):
  import jax
  from orbax.checkpoint.experimental.emergency import checkpoint_manager as emergency

  local = folder / "local" / str(jax.process_index())
  for path in (local, folder / "persistent"):
    path.mkdir(parents=True, exist_ok=True)
  options = emergency.CheckpointManagerOptions(
      local=emergency.LocalCheckpointOptions(save_interval_steps=LOCAL, max_to_keep=2),
      persistent=emergency.PersistentCheckpointOptions(save_interval_steps=PERSISTENT, max_to_keep=2))
  abstract = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=x.sharding), state)
  return emergency.CheckpointManager(local, folder / "persistent", global_mesh=mesh, abstract_state=abstract, options=options)


def member(folder, has_manager):
  rank = join()
  import jax
  import jax.numpy as jnp
  import numpy as np
  from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

  mesh = Mesh(np.array(jax.devices()).reshape(2, -1), ("replica", "shard"))
  rows, whole, batch = (NamedSharding(mesh, spec) for spec in (P("shard"), P(), P(("replica", "shard"))))

  def loss(weights, x):
    return jnp.mean((jnp.tanh(x @ weights["in"]) @ weights["out"] - x.sum(1, keepdims=True)) ** 2)

  def advance(state, step):
    x = jax.lax.with_sharding_constraint(jax.random.normal(jax.random.fold_in(jax.random.key(1), step), (64, 32)), batch)
    value, gradients = jax.value_and_grad(loss)(state["weights"], x)
    momenta = jax.tree.map(lambda m, g: 0.9 * m + g, state["momenta"], gradients)
    weights = jax.tree.map(lambda w, m: w - 0.05 * m, state["weights"], momenta)
    return {"weights": weights, "momenta": momenta}, value

  keys = jax.random.split(jax.random.key(0))
  make = jax.jit(lambda: {"in": jax.random.normal(keys[0], (32, 128)) / 6, "out": jax.random.normal(keys[1], (128, 1)) / 11},
                 out_shardings=rows)
  weights = make()
  state = {"weights": weights, "momenta": jax.tree.map(jnp.zeros_like, weights)}
  shardings = jax.tree.map(lambda x: x.sharding, state)
  advance = jax.jit(advance, out_shardings=(shardings, whole))
  manager, first = None, 0
  if has_manager:
    import orbax.checkpoint as ocp
    from absl import flags
    flags.FLAGS(sys.argv[:1])  # orbax reads some of them
    ocp.multihost.initialize_runtime_to_distributed_ids()
    ocp.multihost.initialize_distributed_to_device_ids()
    manager = make_manager(folder, mesh, state)
    latest = manager.latest_step()
    if latest is not None:
      # Only some processes had saved this step when the job ended: orbax skips it, and refuses to save it again.
      for path in (folder / "local" / str(rank)).iterdir():
        if path.name.isdigit() and int(path.name) > latest:
          shutil.rmtree(path)
      manager.close()
      manager = make_manager(folder, mesh, state)
      state = manager.restore(latest).state
      first = latest + 1
      os.write(1, f"RESTORED {rank} {latest}\n".encode())
  for step in range(first, STEPS):
    state, _ = advance(state, step)
    if manager:
      manager.save(step, args=ocp.args.Composite(state=ocp.args.PyTreeSave(state)))
      (folder / f"{rank}.step").write_text(str(step))
  if manager:
    manager.wait_until_finished()
    manager.close()
  digest = hashlib.sha256()
  for leaf in jax.tree.leaves(jax.jit(lambda x: x, out_shardings=whole)(state)):
    digest.update(np.asarray(leaf.addressable_shards[0].data).tobytes())
  os.write(1, f"BITS {rank} {digest.hexdigest()}\n".encode())


# ---- the job ----


def start(python, folder, *arguments):
  # orbax broadcasts on devices that call themselves TPUs or GPUs.
  return Job("ucx", PROCESSES, [python, __file__, "--member", str(folder), *arguments], folder, MINIPOD_DEVICES=str(DEVICES),
             MINIPOD_PLATFORM="tpu")


def finish(job):
  """(status, output, the errors in standard error); ends processes that hang."""
  hangs = [f"**no end in {SECONDS} s**"] * bool(job.wait_for_end(SECONDS))
  if refusal := job.refusal():
    sys.exit(refusal)
  errors = [line for text in job.said("err").values() for line in re.findall(r"^\S*(?:Error|Exception)\b.*", text, re.MULTILINE)]
  return job.processes[0].returncode, (job.folder / "job.out").read_text(), " ".join(errors + hangs)[:2000]


def bits(out, processes):
  """The digest that all processes have printed."""
  found = dict(re.findall(r"BITS (\d+) (\w+)", out))
  return found["0"] if len(found) == processes and len(set(found.values())) == 1 else f"not alike: {found}"


def killed(python, folder, victim, moment):
  """Runs until the victim has done that many steps, and kills it; returns how the job has ended, and after how many
  seconds.
  """
  job = start(python, folder, "--saved")
  job.wait(SECONDS, lambda: int(job.said("step").get(victim) or 0) >= moment)
  os.kill(job.pids()[victim], signal.SIGKILL)
  begin = time.monotonic()
  status, _, err = finish(job)
  return status, time.monotonic() - begin, err


def one_round(python, dice, wanted):
  """A row of the table, and whether the round succeeded."""
  victim, moment = dice.randrange(PROCESSES), dice.randrange(PERSISTENT + 1, STEPS - 2)
  with tempfile.TemporaryDirectory(prefix="restore-") as name:
    folder = pathlib.Path(name)
    status, seconds, err = killed(python, folder, victim, moment)
    is_lost = victim >= PER_HOST
    if is_lost:
      shutil.rmtree(folder / "local")
    again, out, err_again = finish(start(python, folder, "--saved"))
    restored = {int(step) for _, step in re.findall(r"RESTORED (\d+) (\d+)", out)}
    got = bits(out, PROCESSES)
  is_well = status != 0 and again == 0 and got == wanted and len(restored) == 1
  told = "same bits" if is_well else f"**{status}, {again}, {got}: {err if status == 0 else err_again}**"
  source = "that all see" if is_lost else "of the second host"
  return f"| {victim} | {moment} | {seconds:.1f} s | {source}, step {restored} | {told} |", is_well


def main():
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
  parser.add_argument("--rounds", type=int, default=2)
  parser.add_argument("--seed", type=int, default=1)
  parser.add_argument("--python", default=sys.executable)
  parser.add_argument("--member", type=pathlib.Path, help=argparse.SUPPRESS)
  parser.add_argument("--saved", action="store_true", help=argparse.SUPPRESS)
  options = parser.parse_args()
  if options.member:
    try:
      return member(options.member, options.saved)
    except Exception:
      traceback.print_exc()
      os._exit(1)  # threads of orbax would wait for the dead process
  dice = random.Random(options.seed)
  with tempfile.TemporaryDirectory(prefix="restore-") as name:
    folder = pathlib.Path(name)
    environment = os.environ | {"JAX_PLATFORMS": "minipod", "MINIPOD_DEVICES": str(PROCESSES * DEVICES)}
    alone = subprocess.run([options.python, __file__, "--member", name], env=environment, text=True, capture_output=True, check=True)
    wanted = bits(alone.stdout, 1)
    _, out, err = finish(start(options.python, folder))
    if bits(out, PROCESSES) != wanted:
      sys.exit(f"undisturbed, two hosts have {bits(out, PROCESSES)}, one process {wanted}: {err}")
  print("| killed process | after step | end of the others | checkpoint | |\n|---|---|---|---|---|")
  results = []
  for _ in range(options.rounds):
    row, is_well = one_round(options.python, dice, wanted)
    results.append(is_well)
    print(row, flush=True)
  sys.exit(not all(results))


if __name__ == "__main__":
  main()
