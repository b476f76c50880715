"""Flags of libtpu change predicted times, for all programs (LIBTPU_INIT_ARGS) or for one (compile options)."""

import ast

import scenario

RINGS = "xla_jf_spmd_threshold_for_windowed_einsum_mib"
GATHERS = "xla_tpu_enable_async_collective_fusion_fuse_all_gather"
OPTIONS = [{}, {RINGS: "1000000"}, {RINGS: 1000000}, {GATHERS: False}, {GATHERS: "False"}, {GATHERS: True},
           {"xla_tpu_unknown": 1}, {}]
SCRIPT = f"""
import minipod
mesh = jax.make_mesh((4,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
on = lambda *axes: NamedSharding(mesh, P(*axes))
make = lambda size, *axes: jax.jit(lambda: jnp.zeros((size, size), jnp.bfloat16), out_shardings=on(*axes))()
def seconds(f, out, arguments, options):
  f = jax.jit(f, out_shardings=out, compiler_options=options)
  f(*arguments).block_until_ready()
  before = minipod.virtual_time()
  f(*arguments).block_until_ready()
  return round((minipod.virtual_time() - before) * 1e9)
ring = lambda x, w: x @ w
gathers = lambda x, w: jnp.tanh(jnp.tanh(x @ w) @ w.T)
print([[seconds(ring, on(None, "x"), (make(8192, "x"), make(8192, None, "x")), options),
        seconds(gathers, on("x"), (make(2048, "x"), make(2048, "x")), options)] for options in {OPTIONS}])
"""
POD = {"MINIPOD_TIME": "model", "MINIPOD_TOPOLOGY": "v5e:2x2", "MINIPOD_VALUES": "shapes"}


def times(**variables):
  """In nanoseconds, of both programs with each of the options."""
  return ast.literal_eval(scenario.run(SCRIPT, devices=None, **POD, **variables))


def test_compile_options_are_for_their_program():
  plain, *found = times()
  no_rings, no_gathers = (times(LIBTPU_INIT_ARGS=f"--{flag}")[0] for flag in (f"{RINGS}=1000000", f"{GATHERS}=false"))
  assert no_rings[0] > 1.5 * plain[0] and no_rings[1] == plain[1]
  assert no_gathers[1] > plain[1] and no_gathers[0] == plain[0]
  assert found == [no_rings, no_rings, no_gathers, no_gathers, plain, plain, plain]
