"""Launches on disjoint devices share links if they run at the same time."""

import pytest
import scenario

PROGRAM = """
    import functools, re
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

    some, rest = np.array(devices)[ORDER].reshape(2, -1)
    both = seconds(make(Mesh(np.array([some, rest]), ("y", "x"))))
    a, b = make(Mesh(some, ("x",))), make(Mesh(rest, ("x",)))
    print(both, seconds(a), seconds(b), seconds(a, b), seconds(b, a))
    """


EVEN_AND_ODD = "[*range(0, len(devices), 2), *range(1, len(devices), 2)]"
ANYHOW = "np.random.RandomState(1).permutation(len(devices))"


def run(pod, rounds, order=EVEN_AND_ODD, after=""):
  out = scenario.run(PROGRAM.replace("ROUNDS", str(rounds)).replace("ORDER", order) + after, devices=None,
                     MINIPOD_TIME="model", MINIPOD_TOPOLOGY=pod, MINIPOD_VALUES="shapes")
  return [float(word) for word in out.split()]


# On rings and lines both launches use all links; on a switch each launch has its own.
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


# Stages of both launches use some links of the other launch, and some of their own.
@pytest.mark.parametrize("order", [EVEN_AND_ODD, ANYHOW])
@pytest.mark.parametrize("rounds", [1, 3])
def test_links_that_are_shared_in_part(order, rounds):
  both, a, b, ab, ba = run("v5e:4x4", rounds, order)
  assert max(a, b) < 0.9 * both
  assert ab == pytest.approx(both, rel=0.02) and ba == pytest.approx(both, rel=0.02)


def test_books_of_both():
  """The records of an earlier launch, and of each of its devices, include the delay by the later one."""
  both, *_, before, after, share = run("ring:8", 1, after="""
    def taken():  # by device 0, which is one of the first program's
      row = next(line.split() for line in minipod.time_report().splitlines() if re.match("0[ -]", line))
      return float(row[5]) * {"s": 1, "ms": 1e-3, "us": 1e-6}[row[6]]
    before = taken()
    jax.block_until_ready([f(x) for f, x in (a, b)])
    after = taken()
    @jax.jit
    @functools.partial(jax.shard_map, mesh=Mesh(some, ("x",)), in_specs=P("x"), out_specs=P("x"))
    def send(x):
      return jax.lax.ppermute(x, "x", [(0, 1)])
    jax.block_until_ready([send(a[1]), b[0](b[1])])
    row = next(line for line in minipod.time_report().splitlines() if line.startswith("jit_send"))
    _, *shares = re.findall(r"([\\d.]+) %", row)  # work, collective, waiting
    print(before, after, sum(map(float, shares)))
    """)
  assert after - before == pytest.approx(both, rel=0.05)
  assert share == pytest.approx(100, abs=0.2)


def test_one_after_the_other():
  """Nothing is shared with a launch that has ended."""
  figures = run("ring:8", 1, after="""
    begin = minipod.virtual_time()
    for f, x in (a, b):
      jax.block_until_ready(f(x))
    print(minipod.virtual_time() - begin)
    """)
  assert figures[-1] == pytest.approx(figures[1] + figures[2], rel=0.05)
