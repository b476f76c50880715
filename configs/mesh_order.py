"""The same training on the same pod, with its mesh in two orders: which is faster, and why?

    MINIPOD_TIME=model MINIPOD_TOPOLOGY=configs/two-slices.yaml python configs/mesh_order.py data,model 2048

Four blocks are trained on a mesh of 2 x 8 devices.  Their weights are spread over both axes: FSDP over `data`, which
also divides the tokens, and tensor parallelism over `model`.  The first argument says which axis comes first, and so
has the slow links: neighbours on the other one have neighbouring numbers.  The second one says how many tokens a step
has; with MINIPOD_VALUES=shapes nothing is computed, and they may be as many as one likes.
"""

import os
import re
import sys

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec as P

import minipod

BLOCKS, WIDTH, STEPS = 4, 512, 3
SIZES = {"data": 2, "model": 8}


def make_mesh(order):
  names = order.split(",")
  devices = np.array(jax.devices()).reshape([SIZES[name] for name in names])
  return Mesh(devices, names, axis_types=(AxisType.Auto,) * 2)


def init(key):
  normal = lambda key, *shape: 0.02 * jax.random.normal(key, shape, jnp.bfloat16)
  up, down = jax.random.split(key)
  return {"up": normal(up, BLOCKS, WIDTH, 4 * WIDTH), "down": normal(down, BLOCKS, 4 * WIDTH, WIDTH)}


def block(x, w):
  spread = jax.lax.with_sharding_constraint
  y = jax.nn.gelu(spread(x @ w["up"], P("data", "model")))
  return spread(x + y @ w["down"], P("data")), None


def loss(w, x):
  return jnp.mean(jax.lax.scan(jax.checkpoint(block), x, w)[0].astype(jnp.float32) ** 2)


@jax.jit
def train_step(w, x):
  value, gradient = jax.value_and_grad(loss)(w, x)
  return jax.tree.map(lambda w, g: w - 0.1 * g, w, gradient), value


def collectives_of(report, program, count=3):
  """From the table of times: the link that a program keeps busy longest, and its heaviest collectives."""
  lines = report[report.index(f"{program} on "):].splitlines()
  begin = next(i for i, line in enumerate(lines) if line.startswith("  busiest link"))
  for line in lines[begin:begin + 2 + 2 * count]:
    yield re.sub(r" at \S*/", " at ", line)  # file names without folders


def main(order, tokens):
  mesh = make_mesh(order)
  on = lambda *axes: NamedSharding(mesh, P(*axes))
  shards = {"up": on(None, "data", "model"), "down": on(None, "model", "data")}
  jax.set_mesh(mesh)
  w = jax.jit(init, out_shardings=shards)(jax.random.key(0))
  x = jax.jit(lambda key: jax.random.normal(key, (tokens, WIDTH), jnp.bfloat16),
              out_shardings=on("data"))(jax.random.key(1))
  jax.block_until_ready((w, x))
  begin = minipod.virtual_time()
  for _ in range(STEPS):
    w, value = train_step(w, x)
    value.block_until_ready()
  step = (minipod.virtual_time() - begin) / STEPS
  print(f"{order}, {tokens} tokens: {1e6 * step:.0f} us a step")
  if os.environ.get("MINIPOD_VALUES") != "shapes":
    print(f"loss {value:.6f}")
  print(*collectives_of(minipod.time_report(), "jit_train_step"), sep="\n")


if __name__ == "__main__":
  main(sys.argv[1], int(sys.argv[2]))
