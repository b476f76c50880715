"""Launches on disjoint devices share links when they go on at the same time."""

import pytest
import scenario

PROGRAM = """
    import minipod
    from jax.sharding import Mesh
    devices, size = jax.devices(), 1 << 24

    def make(mesh):
      spec = P(mesh.axis_names)
      f = jax.jit(jax.shard_map(lambda x: jax.lax.psum(x, "x"), mesh=mesh, in_specs=spec, check_vma=False,
                                out_specs=P("y") if "y" in mesh.axis_names else P()))
      zeros = jax.jit(lambda: jnp.zeros(mesh.size * size), out_shardings=NamedSharding(mesh, spec))
      return f, jax.block_until_ready(zeros())

    def seconds(*programs):
      for f, x in programs:
        jax.block_until_ready(f(x))
      begin = minipod.virtual_time()
      jax.block_until_ready([f(x) for _ in range(ROUNDS) for f, x in programs])
      return minipod.virtual_time() - begin

    even, odd = devices[::2], devices[1::2]
    both = seconds(make(Mesh(np.array([even, odd]), ("y", "x"))))
    a, b = make(Mesh(np.array(even), ("x",))), make(Mesh(np.array(odd), ("x",)))
    print(both, seconds(a), seconds(b), seconds(a, b), seconds(b, a))
    """


def run(pod, rounds, **variables):
  out = scenario.run(PROGRAM.replace("ROUNDS", str(rounds)), devices=None, MINIPOD_TIME="model", MINIPOD_TOPOLOGY=pod,
                     MINIPOD_VALUES="shapes", **variables)
  return [float(word) for word in out.split()]


# All links of rings and lines are both launches'; on a switch each has its own.
@pytest.mark.parametrize("pod, is_shared", [("ring:8", True), ("mesh:8", True), ("h100:8", False)])
@pytest.mark.parametrize("rounds", [1, 5])
def test_as_one_program(pod, is_shared, rounds):
  both, a, b, ab, ba = run(pod, rounds)
  assert ab == pytest.approx(both, rel=0.05) and ba == pytest.approx(both, rel=0.05)
  assert a == pytest.approx(b, rel=1e-6)
  if is_shared:
    assert ab > 1.8 * a
  else:
    assert ab == pytest.approx(a, rel=0.05)


def test_one_after_the_other():
  """Nothing is shared with a launch that is over."""
  out = scenario.run(PROGRAM.replace("ROUNDS", "1") + """
    begin = minipod.virtual_time()
    for f, x in (a, b):
      jax.block_until_ready(f(x))
    print(minipod.virtual_time() - begin)
    """, devices=None, MINIPOD_TIME="model", MINIPOD_TOPOLOGY="ring:8", MINIPOD_VALUES="shapes")
  figures = [float(word) for word in out.split()]
  assert figures[-1] == pytest.approx(figures[1] + figures[2], rel=0.05)
