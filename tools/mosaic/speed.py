#!/usr/bin/env python3
"""Measures how fast Mosaic kernels run and compile on this machine, beside the same work without a kernel.

    JAX_PLATFORMS=minipod,cpu MINIPOD_TOPOLOGY=v6e:1x1 python tools/mosaic/speed.py [CASE…] [--rounds N]

Each case runs a kernel and what it is compared with in turns, and prints the median of the rounds' ratios.

    splash_forward   splash attention, 8 heads x 2,048 x 128, against its two matmuls
    splash_backward  its two backward kernels, against their seven matmuls
    splash_compile   milliseconds to compile the forward kernel, against those of its two matmuls
    grid_steps       microseconds per grid step of an empty kernel, beside its work: a grid of 4,096 less one of 64
    dma              32 DMAs of 2 MiB from HBM to VMEM and 32 back, against numpy's copies of as many bytes
    paged            JAX's paged attention, 8 sequences of 64 tokens, against JAX's TPU interpreter on the CPU
"""

import argparse
import statistics
import time

import jax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.experimental.pallas.ops.tpu.paged_attention import paged_attention
from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_kernel as splash
from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_mask as masks
import jax.numpy as jnp
import numpy as np

HEADS, LENGTH, DEPTH = 8, 2048, 128


def seconds(call):
  """Of the call. Its results go afterwards, so that the next one does not pay for it."""
  began = time.perf_counter()
  results = jax.block_until_ready(call())
  took = time.perf_counter() - began
  del results
  time.sleep(0.05)
  return took


def in_turns(ours, other, rounds):
  """The median ratio of ours to the other, and the medians of both in seconds."""
  seconds(ours), seconds(other)
  pairs = [(seconds(ours), seconds(other)) for _ in range(rounds)]
  return [statistics.median(column) for column in zip(*[(a / b, a, b) for a, b in pairs])]


def show(name, ratio, ours, other):
  print(f"{name:16} {ratio:7.3g}  kernel {ours * 1e3:9.3f} ms  other {other * 1e3:9.3f} ms", flush=True)


# ---- splash attention ----

def heads(count):
  key = jax.random.key(0)
  return [jax.random.normal(k, (HEADS, LENGTH, DEPTH), jnp.bfloat16) * 0.3 for k in jax.random.split(key, count)]


def attention():
  mask = masks.MultiHeadMask([masks.FullMask((LENGTH, LENGTH)) for _ in range(HEADS)])
  sizes = splash.BlockSizes(block_q=512, block_kv=512, block_kv_compute=512, block_q_dkv=512, block_kv_dkv=512,
                            block_kv_dkv_compute=512, block_q_dq=512, block_kv_dq=512)
  return splash.make_splash_mha(mask=mask, head_shards=1, q_seq_shards=1, block_sizes=sizes)


def dot(equation, a, b):
  return jnp.einsum(equation, a, b, preferred_element_type=jnp.float32)


def forward_matmuls(q, k, v):
  scores = dot("hqd,hkd->hqk", q, k)
  return scores, dot("hqk,hkd->hqd", jax.lax.optimization_barrier(scores), v)


def backward_matmuls(q, k, v, out):
  """Those of the kernel for dq (scores, dp, dq) and of that for dk and dv (scores, dp, dv, dk)."""
  both = []
  for _ in range(2):
    q, k, v, out = jax.lax.optimization_barrier((q, k, v, out))
    both.append((dot("hqd,hkd->hqk", q, k), dot("hqd,hkd->hqk", out, v)))
  (_, dp), (scores, dp2) = jax.lax.optimization_barrier(tuple(both))
  return dot("hqk,hkd->hqd", dp, k), dot("hqk,hqd->hkd", scores, out), dot("hqk,hqd->hkd", dp2, q)


def splash_forward(rounds):
  q, k, v = heads(3)
  kernel, matmuls = jax.jit(attention()), jax.jit(forward_matmuls)
  show("splash_forward", *in_turns(lambda: kernel(q, k, v), lambda: matmuls(q, k, v), rounds))


def splash_backward(rounds):
  q, k, v, out = heads(4)
  _, pull = jax.vjp(jax.jit(attention()), q, k, v)
  pull, matmuls = jax.jit(pull), jax.jit(backward_matmuls)
  show("splash_backward", *in_turns(lambda: pull(out), lambda: matmuls(q, k, v, out), rounds))


def splash_compile(rounds):
  q, k, v = heads(3)

  def compile_time(function):
    lowered = jax.jit(function).lower(q, k, v)
    jax.clear_caches()
    return seconds(lambda: (lowered.compile(), 0)[1])
  kernel = attention()
  pairs = [(compile_time(lambda *a: kernel(*a)), compile_time(lambda *a: forward_matmuls(*a))) for _ in range(rounds)]
  show("splash_compile", *[statistics.median(c) for c in zip(*[(a / b, a, b) for a, b in pairs])])


# ---- grid steps ----

def empty_kernel(steps):
  def body(x, out):
    out[...] = x[...]
  block = pl.BlockSpec((8, 128), lambda i: (0, 0))
  return jax.jit(pl.pallas_call(body, grid=(steps,), in_specs=[block], out_specs=block,
                                out_shape=jax.ShapeDtypeStruct((8, 128), jnp.float32)))


def grid_steps(rounds):
  x = jnp.ones((8, 128), jnp.float32)
  many, few = empty_kernel(4096), empty_kernel(64)
  _, a, b = in_turns(lambda: many(x), lambda: few(x), rounds)
  print(f"{'grid_steps':16} {(a - b) / (4096 - 64) * 1e6:7.3f} us per step", flush=True)


# ---- DMAs ----

def dma(rounds):
  rows, size = 512, 32  # 2 MiB, 64 MiB

  def body(x, out, room, done):
    def turn(i, _):
      place = pl.ds(i * rows, rows)
      into = pltpu.make_async_copy(x.at[place], room, done)
      into.start()
      into.wait()
      back = pltpu.make_async_copy(room, out, done)
      back.start()
      back.wait()
      return 0
    jax.lax.fori_loop(0, size, turn, 0)
  anywhere = pl.BlockSpec(memory_space=pl.ANY)
  copy = jax.jit(pl.pallas_call(
      body, in_specs=[anywhere], out_specs=anywhere, out_shape=jax.ShapeDtypeStruct((rows, 1024), jnp.float32),
      scratch_shapes=[pltpu.VMEM((rows, 1024), jnp.float32), pltpu.SemaphoreType.DMA]))
  x = jnp.ones((rows * size, 1024), jnp.float32)
  source, room, target = (np.ones(shape, np.float32) for shape in (x.shape, (rows, 1024), (rows, 1024)))

  def by_hand():
    for i in range(size):
      np.copyto(room, source[i * rows:(i + 1) * rows])
      np.copyto(target, room)
    return 0
  show("dma", *in_turns(lambda: copy(x), by_hand, rounds))


# ---- paged attention ----

def paged(rounds):
  """JAX's interpreters cannot run its ragged kernels, so this is its attention of one token per sequence."""
  sequences, length, page, kv_heads, q_heads, depth = 8, 64, 16, 2, 8, 128
  pages = sequences * length // page
  rng = np.random.default_rng(0)
  normal = lambda *shape: rng.standard_normal(shape, np.float32) * 0.3
  args = (normal(sequences, q_heads, depth), normal(kv_heads, pages, page, depth), normal(kv_heads, pages, page, depth),
          np.full(sequences, length, np.int32), np.arange(pages, dtype=np.int32).reshape(sequences, -1))
  attend = lambda *a: paged_attention(*a, pages_per_compute_block=2)
  ours, kernel = [jax.device_put(arg) for arg in args], jax.jit(attend)
  call = lambda: kernel(*ours)
  seconds(call)
  median = statistics.median([seconds(call) for _ in range(rounds)])
  cpu = jax.devices("cpu")[0]
  with pltpu.force_tpu_interpret_mode(), jax.default_device(cpu):
    host = [jax.device_put(arg, cpu) for arg in args]
    interpreted = jax.jit(lambda *a: attend(*a))
    other = [seconds(lambda: interpreted(*host)) for _ in range(2)][1]
  show("paged", median / other, median, other)


CASES = (splash_forward, splash_backward, splash_compile, grid_steps, dma, paged)


def main():
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("cases", nargs="*")
  parser.add_argument("--rounds", type=int, default=7)
  args = parser.parse_args()
  for run in CASES:
    if not args.cases or run.__name__ in args.cases:
      run(args.rounds)


if __name__ == "__main__":
  main()
