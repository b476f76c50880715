"""Runs every form of callback in every place where programs may have one, and prints the results.

Prints a JSON object: "form in place" to {"values": results, "told": arguments of the callables}, or {"error": the
exception's type and the beginning of its message}.  It runs on JAX's default platform, alone or as one of several
processes, so that platforms can be compared.
"""

import contextlib
import functools
import io
import json
import sys

import jax
from jax import lax
from jax.experimental import buffer_callback
from jax.experimental import checkify
from jax.experimental import io_callback
import jax.numpy as jnp
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P, SingleDeviceSharding
import numpy as np

jax.config.update("jax_experimental_unsafe_xla_runtime_errors", True)  # checks that call Python

TOLD = []
FORMS = {}
PLACES = {}


def tell(*arrays):
  TOLD.append([np.asarray(array).tolist() for array in arrays])


def double(x):
  tell(x)
  return np.asarray(x) * 2


def like(x):
  return jax.ShapeDtypeStruct(x.shape, x.dtype)


def form(function):
  FORMS[function.__name__] = function
  return function


def place(function):
  PLACES[function.__name__] = function
  return function


# ---- Forms: functions of an array, whose result is twice the array ----


@form
def pure_callback(x):
  return jax.pure_callback(double, like(x), x)


def _vmapped(method, x):
  one = lambda v: jax.pure_callback(double, like(v), v, vmap_method=method)
  return jax.vmap(one)(x)


for method in ("sequential", "sequential_unrolled", "expand_dims", "broadcast_all",
               "legacy_vectorized"):
  FORMS[f"pure_callback_{method}"] = functools.partial(_vmapped, method)


@form
def pure_callback_of_many(x):
  def callback(a, b, flags):
    tell(a, b["half"], flags)
    return {"sum": a + b["half"], "count": np.int32(flags.sum())}
  out = jax.pure_callback(
      callback, {"sum": like(x), "count": jax.ShapeDtypeStruct((), np.int32)}, x,
      {"half": (x / 2).astype(jnp.bfloat16)}, x > 2)
  return x * 2 + 0 * out["count"] + 0 * out["sum"]


@form
def io_callback_unordered(x):
  return io_callback(double, like(x), x)


@form
def io_callback_ordered(x):
  first = io_callback(double, like(x), x, ordered=True)
  io_callback(tell, None, first, ordered=True)
  return first


@form
def io_callback_on_the_last_device(x):
  device = jax.devices()[-1]
  return io_callback(double, like(x), x, sharding=SingleDeviceSharding(device))


@form
def debug_print(x):
  jax.debug.print("print {} and {y}", x, y=x.sum())
  return x * 2


@form
def debug_print_ordered(x):
  jax.debug.print("first {}", x, ordered=True)
  jax.debug.print("second {}", x, ordered=True)
  return x * 2


@form
def debug_print_partitioned(x):
  jax.debug.print("part {}", x, partitioned=True)
  return x * 2


@form
def debug_callback(x):
  jax.debug.callback(tell, x)
  return x * 2


@form
def debug_callback_ordered(x):
  jax.debug.callback(tell, x, ordered=True)
  jax.debug.callback(lambda: tell(), ordered=True)
  return x * 2


@form
def debug_callback_partitioned(x):
  jax.debug.callback(tell, x, partitioned=True)
  return x * 2


@form
def checkify_check(x):
  checkify.check(jnp.all(x >= 0), "negative: {x}", x=x)
  return x * 2


@form
def checkify_check_that_fails(x):
  checkify.check(jnp.all(x < 0), "not negative: {x}", x=x.max())
  return x * 2


@form
def buffer_callback_form(x):
  def callback(ctx, out, given):
    del ctx
    tell(np.asarray(given))
    np.asarray(out)[...] = np.asarray(given) * 2
  return buffer_callback.buffer_callback(callback, like(x))(x)


@form
def gradient(x):
  @jax.custom_jvp
  def square(v):
    return jax.pure_callback(lambda a: np.asarray(a)**2, like(v), v, vmap_method="expand_dims")

  @square.defjvp
  def _(primals, tangents):
    v, = primals
    slope = jax.pure_callback(double, like(v), v, vmap_method="expand_dims")
    return square(v), slope * tangents[0]

  return jax.grad(lambda v: square(v).sum())(x)


@form
def breakpoint(x):
  out = io.StringIO()
  jax.debug.breakpoint(stdin=io.StringIO("c\n" * 100), stdout=out, backend="cli")
  return x * 2


@form
def in_a_while_loop(x):
  def body(carry):
    i, v = carry
    jax.debug.callback(tell, i)
    return i + 1, io_callback(lambda a: np.asarray(a) + 1, like(v), v)
  return x + lax.while_loop(lambda carry: carry[0] < 3, body, (0, x))[1] - 3


@form
def in_the_condition_of_a_loop(x):
  def cond(carry):
    jax.debug.callback(tell, carry[0])
    return carry[0] < 2
  return lax.while_loop(cond, lambda carry: (carry[0] + 1, carry[1]), (0, x * 2))[1]


@form
def in_a_branch(x):
  return lax.cond(x.sum() > -1, lambda v: io_callback(double, like(v), v),
                  lambda v: jax.pure_callback(lambda a: a - 1, like(v), v), x)


@form
def under_remat(x):
  @jax.checkpoint
  def inner(v):
    jax.debug.callback(tell, v)
    return jnp.sin(v)
  return 2 * x + 0 * jax.grad(lambda v: inner(v).sum())(x)


@form
def of_no_elements(x):
  nothing = jax.pure_callback(lambda a: np.zeros((0, 3), np.float32),
                              jax.ShapeDtypeStruct((0, 3), np.float32), x[:0])
  return x * 2 + nothing.sum()


@form
def that_fails(x):
  def callback(v):
    raise ValueError("the callback's own words")
  return jax.pure_callback(callback, like(x), x)


@form
def of_a_wrong_shape(x):
  return jax.pure_callback(lambda v: np.zeros((7, 7), np.float32), like(x), x)


@form
def that_uses_jax(x):
  def callback(v):
    tell(v)
    return np.asarray(jax.jit(lambda w: w + w)(v))
  return jax.pure_callback(callback, like(x), x)


# ---- Places: [8] floats go in, [8] floats come out ----


def mesh():
  return Mesh(np.array(jax.devices()), ("i",))


def spread(x):
  return jax.make_array_from_callback((8,), NamedSharding(mesh(), P("i")), lambda at: x[at])


def parts(array):
  """The parts that this process has, with their positions."""
  return sorted((shard.index[0].start or 0, np.asarray(shard.data).tolist())
                for shard in array.addressable_shards)


@place
def eagerly(function, x):
  return function(jnp.asarray(x))


@place
def jit(function, x):
  return jax.jit(function)(x)


@place
def pmap(function, x):
  return jax.pmap(function)(x.reshape(8, 1)).reshape(8)


@place
def shard_map(function, x):
  mapped = jax.shard_map(function, mesh=mesh(), in_specs=P("i"), out_specs=P("i"), check_vma=False)
  return jax.jit(mapped)(spread(x))


@place
def shard_map_with_a_sum(function, x):
  def body(v):
    return function(v) + 0 * lax.psum(function(v + 1), "i")
  mapped = jax.shard_map(body, mesh=mesh(), in_specs=P("i"), out_specs=P("i"), check_vma=False)
  return jax.jit(mapped)(spread(x))


@place
def sharded(function, x):
  return jax.jit(function, out_shardings=NamedSharding(mesh(), P("i")))(spread(x))


@place
def scan(function, x):
  return jax.jit(lambda v: lax.scan(lambda c, row: (c, function(row)), 0, v)[1])(
      x.reshape(4, 2)).reshape(8)


@place
def vmap(function, x):
  return jax.jit(jax.vmap(function))(x.reshape(4, 2)).reshape(8)


# JAX's CPU backend cannot run these: if a device of a program with collectives fails, it ends the process.
FAILING = ("checkify_check_that_fails", "that_fails", "of_a_wrong_shape")
WITH_COLLECTIVES = ("sharded", "shard_map_with_a_sum")

# ---- Running them ----


def run(name, where):
  TOLD.clear()
  printed = io.StringIO()
  x = np.arange(8, dtype=np.float32)
  try:
    with contextlib.redirect_stdout(printed):
      result = PLACES[where](FORMS[name], x)
      result.block_until_ready()
      jax.effects_barrier()
  except Exception as error:
    text = str(error)
    for device in jax.devices():  # each platform has names of its own
      text = text.replace(str(device), f"device {device.id}")
    for kept in ("the callback's own words", "Incorrect output shape", "not negative"):
      if kept in text:
        text = kept
    jax.effects_barrier.__globals__["dispatch"].runtime_tokens.clear()
    return {"error": [type(error).__name__, text.splitlines()[0][:60]]}
  return {"values": parts(result), "told": list(TOLD), "printed": printed.getvalue().splitlines()}


def main(places):
  outcomes = {}
  for where in places:
    for name in FORMS:
      is_fatal = name in FAILING and where in WITH_COLLECTIVES
      if is_fatal and jax.default_backend() == "cpu":
        continue
      # If the process dies, this file shows where.
      print(f"{name} in {where}", file=sys.stderr, flush=True)
      outcomes[f"{name} in {where}"] = run(name, where)
  print(json.dumps(outcomes))


if __name__ == "__main__":
  main(sys.argv[1:] or list(PLACES))
