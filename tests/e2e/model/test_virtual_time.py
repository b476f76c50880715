"""Virtual times are the same bits whatever runs the program, and without computing it."""

import textwrap

import mpirun
import pytest
import scenario

# Three steps of two layers, sharded over both axes, with a loop over layers and one in a loop.
TRAIN = """
    import minipod
    auto = (jax.sharding.AxisType.Auto,) * 2
    mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=auto)
    on = lambda *axes: NamedSharding(mesh, P(*axes))
    def init():
      key = jax.random.key(0)
      return {"up": jax.random.normal(key, (2, 128, 512)), "down": jax.random.normal(key, (2, 512, 128))}
    shards = {"up": on(None, "data", "model"), "down": on(None, "model", "data")}
    w = jax.jit(init, out_shardings=shards)()
    x = jax.jit(lambda: jnp.ones((64, 128)), out_shardings=on("data"))()
    def layer(x, w):
      y = jax.nn.gelu(x @ w["up"]) @ w["down"]
      return lax.fori_loop(0, 3, lambda i, y: y * 0.5 + i, x + y * 1e-3), None
    def loss(w, x):
      return (lax.scan(layer, x, w)[0] ** 2).mean()
    @jax.jit
    def step(w, x):
      value, g = jax.value_and_grad(loss)(w, x)
      return jax.tree.map(lambda w, g: w - 1e-3 * g, w, g), value
    for _ in range(3):
      w, value = step(w, x)
      value.block_until_ready()
    print(minipod.virtual_time().hex())
    """
POD = {"MINIPOD_TIME": "model", "MINIPOD_TOPOLOGY": "v5e:2x4"}


def train(**variables):
  return scenario.run(TRAIN, devices=None, **POD, **variables)


@pytest.fixture(scope="module")
def expected():
  time = train().strip()
  assert 1e-6 < float.fromhex(time) < 1e-1
  return time


@pytest.mark.parametrize("workers", [1, 2, 3, 8])
def test_any_number_of_workers(expected, workers):
  assert train(MINIPOD_WORKERS=workers).strip() == expected


def test_without_values(expected):
  assert train(MINIPOD_VALUES="shapes").strip() == expected


@mpirun.NEEDS_MPIRUN
@pytest.mark.parametrize("ranks", [2, 4])
def test_any_number_of_processes(expected, ranks):
  job = mpirun.run_well(ranks, textwrap.dedent(TRAIN), **POD)
  assert [out.strip() for out in job.outs] == [expected] * ranks


def test_a_pod_larger_than_the_machine():
  out = scenario.run("""
      import minipod
      x = jax.jit(lambda: jnp.ones((1 << 20, 1 << 20), jnp.bfloat16), out_shardings=NamedSharding(
          jax.make_mesh((256,), ("i",)), P("i")))()
      y = jax.jit(lambda x: x.sum(0))(x).block_until_ready()  # two terabytes
      assert minipod.virtual_time() > 2**41 / 256 / 1e12
      assert x.addressable_shards[0].device.memory_stats()["bytes_in_use"] >= 2**33
      try:
        np.asarray(y)
      except jax.errors.JaxRuntimeError as error:
        print("values is shapes" in str(error))
      print(np.asarray(jax.jit(lambda n: n * 2 + 1)(3)))  # what is small is there
      """, devices=None, MINIPOD_TIME="model", MINIPOD_VALUES="shapes", MINIPOD_TOPOLOGY="v5e:16x16")
  assert out.split() == ["True", "7"]


@pytest.mark.parametrize("variables, words", [
    ({"MINIPOD_TIME": "fast"}, "expected off or model, got 'fast'"),
    ({"MINIPOD_VALUES": "shapes"}, "needs the option time: model"),
    ({"MINIPOD_TIME": "model", "MINIPOD_VALUES": "none"}, "expected real or shapes, got 'none'"),
    ({"MINIPOD_TIME": "model", "MINIPOD_ALGORITHMS": "all_reduce:rings"}, "ring"),
    ({"MINIPOD_TIME": "model", "MINIPOD_CALIBRATION": "/nonexistent"}, "/nonexistent"),
])
def test_wrong_options(variables, words):
  assert words in scenario.run("jax.devices()", fails=True, **variables)
