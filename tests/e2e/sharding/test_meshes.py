"""Programs on some of the devices, in any order, several at the same time; manual and automatic axes mixed."""

import itertools
import threading

import jax
from jax import lax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P


def mesh_of(indices, shape, names):
  return Mesh(np.array(jax.devices())[np.array(indices)].reshape(shape), names)


@pytest.fixture
def mesh():
  return mesh_of(range(8), (2, 4), ("x", "y"))


def same_everywhere(array, value):
  """Checks that every device has its part of the value."""
  value = np.asarray(value)
  for shard in array.addressable_shards:
    np.testing.assert_allclose(np.asarray(shard.data), value[shard.index], rtol=1e-5, atol=1e-5)


def layer(a, w):
  return jnp.tanh(a @ w).sum(0)


def operands(rows=8, columns=12, seed=0):
  rng = np.random.default_rng(seed)
  return (rng.standard_normal((rows, columns)).astype(np.float32),
          rng.standard_normal((columns, 16)).astype(np.float32))


# --- subsets and orders ---


@pytest.mark.parametrize("indices", [(0, 1, 2, 3), (4, 5, 6, 7), (7, 2, 5, 0), (6, 4, 2, 0),
                                     (1, 0, 3, 2)])
@pytest.mark.parametrize("specs", [(P("x", "y"), P("y")), (P("y", "x"), P("x", "y")),
                                   (P(("y", "x")), P())])
def test_subset_in_any_order(indices, specs):
  mesh = mesh_of(indices, (2, 2), ("x", "y"))
  a, w = operands()
  put = [jax.device_put(v, NamedSharding(mesh, s)) for v, s in zip((a, w), specs)]
  result = jax.jit(layer)(*put)
  assert {d.id for d in result.sharding.device_set} == set(indices)
  same_everywhere(result, layer(a, w))


@pytest.mark.parametrize("count", [1, 2, 3, 5, 6, 7])
def test_any_number_of_devices(count):
  mesh = mesh_of(range(8 - count, 8), (count,), ("x",))
  a = np.arange(count * 6, dtype=np.float32).reshape(count * 2, 3)
  f = jax.jit(lambda a: (a.sum(0), a.T @ a, jnp.flip(a, 0)),
              out_shardings=NamedSharding(mesh, P()))
  for result, wanted in zip(f(jax.device_put(a, NamedSharding(mesh, P("x")))),
                            (a.sum(0), a.T @ a, a[::-1])):
    same_everywhere(result, wanted)


def test_orders_of_one_mesh_to_another():
  """Moves an array between meshes that order the same devices differently."""
  a = np.arange(64.).reshape(8, 8).astype(np.float32)
  orders = [(0, 1, 2, 3), (3, 2, 1, 0), (2, 0, 3, 1)]
  for first, second in itertools.permutations(orders, 2):
    array = jax.device_put(a, NamedSharding(mesh_of(first, (2, 2), ("x", "y")), P("x", "y")))
    moved = jax.device_put(array * 2, NamedSharding(mesh_of(second, (2, 2), ("x", "y")), P("y")))
    same_everywhere(moved, a * 2)


def test_disjoint_subsets_at_once():
  """Threads run programs with collectives on halves of the devices, each many times."""
  halves = [mesh_of(range(0, 4), (2, 2), ("x", "y")), mesh_of(range(4, 8), (2, 2), ("x", "y"))]
  failures = []

  def work(index):
    try:
      mesh = halves[index]
      a, w = operands(seed=index)
      step = jax.jit(lambda a, w: (jnp.tanh(a @ w) @ w.T, w * 1.0))
      array = jax.device_put(a, NamedSharding(mesh, P("x", "y")))
      weights = jax.device_put(w, NamedSharding(mesh, P("y")))
      wanted = a
      for _ in range(20):
        array, weights = step(array, weights)
        wanted = np.tanh(wanted @ w) @ w.T
      np.testing.assert_allclose(np.asarray(array), wanted, rtol=1e-4, atol=1e-4)
    except BaseException as error:
      failures.append(error)

  threads = [threading.Thread(target=work, args=(i,)) for i in range(2)]
  for thread in threads:
    thread.start()
  for thread in threads:
    thread.join()
  assert not failures


def test_subsets_without_waiting():
  """A program on one half does not wait for the other half's results."""
  meshes = [mesh_of(range(0, 4), (4,), ("x",)), mesh_of(range(4, 8), (4,), ("x",)),
            mesh_of(range(2, 6), (4,), ("x",))]
  a = np.arange(32, dtype=np.float32).reshape(8, 4)
  f = jax.jit(lambda a: a + a.sum(0))
  arrays = [jax.device_put(a, NamedSharding(m, P("x"))) for m in meshes]
  for _ in range(5):
    arrays = [f(array) for array in arrays]
  wanted = a
  for _ in range(5):
    wanted = wanted + wanted.sum(0)
  for array in arrays:
    same_everywhere(array, wanted)


# --- manual and automatic axes ---


def test_some_axes_automatic(mesh):
  """The body is manual over x; y stays automatic."""
  a, w = operands()

  def body(a, w):
    assert a.shape == (4, 12)
    w = lax.with_sharding_constraint(w, NamedSharding(
        jax.sharding.get_abstract_mesh(), P(None, "y")))
    return lax.psum(jnp.tanh(a @ w).sum(0), "x")

  f = jax.shard_map(body, mesh=mesh, in_specs=(P("x"), P()), out_specs=P(), axis_names={"x"})
  put = jax.device_put(a, NamedSharding(mesh, P("x", "y"))), jax.device_put(
      w, NamedSharding(mesh, P("y")))
  same_everywhere(jax.jit(f)(*put), layer(a, w))


def test_gradient_through_automatic_axes(mesh):
  a, w = operands()

  def mean_loss(w, a):
    f = jax.shard_map(lambda a, w: lax.pmean((jnp.tanh(a @ w) ** 2).mean(), "x"), mesh=mesh,
                      in_specs=(P("x"), P()), out_specs=P(), axis_names={"x"})
    return f(a, w)

  put = jax.device_put(w, NamedSharding(mesh, P(None, "y"))), jax.device_put(
      a, NamedSharding(mesh, P("x")))
  wanted = jax.grad(lambda w, a: (jnp.tanh(a @ w) ** 2).mean())(w, a)
  np.testing.assert_allclose(np.asarray(jax.jit(jax.grad(mean_loss))(*put)), wanted, rtol=1e-5,
                             atol=1e-7)


def nested_manual(mesh, index):
  """A region over y within one over x, inside which both axes are manual.

  It adds `index(axis, numbers)` of each axis; `numbers` is the region's part of 0, 1, 2 ... along that axis.
  """
  a = np.arange(64, dtype=np.float32).reshape(8, 8)
  rows, columns = np.arange(2, dtype=np.float32), np.arange(4, dtype=np.float32)

  def inner(b, column):
    assert b.shape == (4, 2)
    return b + index("y", column).astype(b.dtype) + lax.psum(b, ("x", "y"))

  def outer(b, row, columns):
    assert b.shape == (4, 8)
    c = jax.shard_map(inner, in_specs=(P(None, "y"), P("y")), out_specs=P(None, "y"),
                      axis_names={"y"})(b, columns)
    return c * 2 + index("x", row).astype(b.dtype)

  f = jax.jit(jax.shard_map(outer, mesh=mesh, in_specs=(P("x"), P("x"), P()), out_specs=P("x"),
                            axis_names={"x"}))
  blocks = a.reshape(2, 4, 4, 2)
  total = blocks.sum((0, 2))
  wanted = blocks + np.arange(4)[:, None] + total[None, :, None]
  wanted = (wanted * 2 + np.arange(2)[:, None, None, None]).reshape(8, 8)
  same_everywhere(f(a, rows, columns), wanted)


def test_nested_manual(mesh):
  nested_manual(mesh, lambda axis, numbers: numbers)


@pytest.mark.skipif(jax.__version_info__ < (0, 10), reason="JAX 0.9 makes a program of it that MLIR "
                    "refuses, and waits for itself while it does; its CPU backend too")
def test_index_in_nested_manual(mesh):
  nested_manual(mesh, lambda axis, numbers: lax.axis_index(axis))


def test_jit_inside_manual(mesh):
  a = np.arange(32, dtype=np.float32).reshape(8, 4)
  double = jax.jit(lambda b: b * 2 + lax.axis_index("y").astype(b.dtype))

  def body(b):
    return double(double(b)) + lax.pmax(b, "x")

  f = jax.jit(jax.shard_map(body, mesh=mesh, in_specs=P("x", "y"), out_specs=P("x", "y")))
  y = np.arange(4, dtype=np.float32)
  wanted = (a * 2 + y) * 2 + y + np.tile(a.reshape(2, 4, 4).max(0), (2, 1))
  same_everywhere(f(a), wanted)


def test_manual_in_a_loop_between_automatic_code(mesh):
  a = np.arange(32, dtype=np.float32).reshape(8, 4) / 32
  ring = [(i, (i + 1) % 4) for i in range(4)]
  shift = jax.shard_map(lambda b: lax.ppermute(b, "y", ring), mesh=mesh, in_specs=P("x", "y"),
                        out_specs=P("x", "y"))

  def f(a):
    def step(_, b):
      b = lax.with_sharding_constraint(b + b.mean(), NamedSharding(mesh, P("y")))
      return shift(b) * 0.5

    return lax.fori_loop(0, 3, step, a)

  wanted = a
  for _ in range(3):
    wanted = np.roll(wanted + wanted.mean(), 1, axis=1) * 0.5
  same_everywhere(jax.jit(f)(jax.device_put(a, NamedSharding(mesh, P("x")))), wanted)


def test_automatic_inside_branches_of_manual(mesh):
  a, w = operands()

  def body(a, w):
    return lax.cond(lax.axis_index("x") == 0, lambda: (a @ w).sum(0), lambda: (a @ w).max(0))[None]

  f = jax.shard_map(body, mesh=mesh, in_specs=(P("x"), P()), out_specs=P("x"), axis_names={"x"},
                    check_vma=False)
  wanted = np.stack([(a[:4] @ w).sum(0), (a[4:] @ w).max(0)])
  np.testing.assert_allclose(np.asarray(jax.jit(f)(a, w)), wanted, rtol=1e-5)


# --- both, at random ---


def random_spec(rng, axes, rank):
  dims = [[] for _ in range(rank)]
  for axis in rng.permutation(list(axes)):
    dim = int(rng.integers(-1, rank))
    if dim >= 0:
      dims[dim].append(str(axis))
  return P(*[tuple(d) if d else None for d in dims])


def small(a):
  return jnp.mod(a, 5) - 2


def random_body(rng, auto):
  """Steps that compute each row separately, with constraints over the automatic axes if these are given."""
  kinds = rng.integers(0, 6, 4)
  specs = [random_spec(rng, auto, 2) for _ in range(5)]
  in_loop, is_remat = rng.integers(0, 2, 2)

  def make(is_mesh):
    def constrain(a, k):
      if not is_mesh or not auto:
        return a
      return lax.with_sharding_constraint(
          a, NamedSharding(jax.sharding.get_abstract_mesh(), specs[k]))

    def steps(a, w):
      for k, kind in enumerate(kinds):
        a = [lambda: small(a @ w), lambda: constrain(a, k) + 1, lambda: small(a @ w + a @ w.T),
             lambda: a - a.sum(1, keepdims=True) % 3,
             lambda: constrain(small(jnp.maximum(a, 0) @ w), k), lambda: a[:, ::-1] * 2 % 5][kind]()
      return small(a)

    one = jax.checkpoint(steps) if is_remat else steps
    if not in_loop:
      return one
    return lambda a, w: lax.fori_loop(0, 3, lambda _, c: constrain(one(c, w), 4), a)

  return make


@pytest.mark.parametrize("seed", range(16))
def test_random_manual_and_automatic(seed):
  """Compares a body that is manual over some axes and automatic over the others, to the bit."""
  rng = np.random.default_rng(seed)
  shape, names = [((2, 2, 2), ("x", "y", "z")), ((2, 4), ("x", "y")), ((4, 2), ("x", "y"))][seed % 3]
  mesh = mesh_of(range(8), shape, names)
  manual = tuple(str(n) for n in rng.permutation(names)[:rng.integers(1, len(names) + 1)])
  body = random_body(rng, [n for n in names if n not in manual])
  a, w = (rng.integers(-3, 4, (16, 16)).astype(np.float32) for _ in range(2))

  def local(a, w):
    rows = body(True)(a, w)
    return rows, lax.psum(rows.sum(0), manual)

  f = jax.shard_map(local, mesh=mesh, in_specs=(P(manual), P()), out_specs=(P(manual), P()),
                    axis_names=set(manual), check_vma=False)
  put = [jax.device_put(v, NamedSharding(mesh, random_spec(rng, names, 2))) for v in (a, w)]
  out = NamedSharding(mesh, random_spec(rng, names, 2)), None
  with jax.default_device(jax.devices("cpu")[0]):
    rows = np.asarray(jax.jit(body(False))(a, w))
  for found, wanted in zip(jax.jit(f, out_shardings=out)(*put), (rows, rows.sum(0))):
    for shard in found.addressable_shards:
      np.testing.assert_array_equal(np.asarray(shard.data), wanted[shard.index])


# --- unreduced ---


def test_unreduced_results(mesh):
  """Terms leave a program unreduced, and the next program sums them."""
  mesh = jax.make_mesh((2, 4), ("x", "y"), axis_types=(jax.sharding.AxisType.Explicit,) * 2)
  a, w = operands()
  with jax.set_mesh(mesh):
    put = jax.device_put(a, P("x", "y")), jax.device_put(w, P("y", None))
    terms = jax.jit(lambda a, w: jnp.einsum("ij,jk->ik", a, w,
                                            out_sharding=P("x", None, unreduced={"y"})))(*put)
    np.testing.assert_allclose(sum(np.asarray(s.data) for s in terms.addressable_shards[:4]),
                               a[:4] @ w, rtol=1e-5, atol=1e-5)
    twice = jax.jit(lambda t: jax.reshard(t + t, P("x", "y")))(terms)
    np.testing.assert_allclose(np.asarray(twice), 2 * (a @ w), rtol=1e-5, atol=1e-5)
    whole = jax.jit(lambda t: jax.reshard(t, P()))(terms)
    np.testing.assert_allclose(np.asarray(whole), a @ w, rtol=1e-5, atol=1e-5)


def explicit_mesh():
  return jax.make_mesh((2, 4), ("x", "y"), axis_types=(jax.sharding.AxisType.Explicit,) * 2)


def test_unreduced_results_of_several_axes():
  """Terms along two axes are summed along one axis, and stay terms along the other."""
  with jax.set_mesh(explicit_mesh()):
    a = jax.device_put(np.arange(64, dtype=np.float32).reshape(8, 8), P("x", "y"))
    some = jax.jit(lambda a: jax.reshard(
        jax.lax.reduce_sum(a, axes=(0, 1), out_sharding=P(unreduced={"x", "y"})),
        P(unreduced={"x"})))(a)
    rows = np.asarray(a).reshape(2, -1).sum(1)
    assert [float(s.data) for s in some.addressable_shards] == [rows[0]] * 4 + [rows[1]] * 4
    assert float(jax.reshard(some, P())) == rows.sum()


@pytest.mark.skipif(not hasattr(jax.sharding, "UnreducedKind"), reason="JAX since 0.11")
@pytest.mark.parametrize("name", ["max", "min"])
def test_unreduced_maxima(name):
  """Maxima and minima of parts leave a program unreduced, and the next program combines them."""
  kind = getattr(jax.sharding.UnreducedKind, name)
  reduce, reference = getattr(jax.lax, "reduce_" + name), getattr(np, name)
  combine = getattr(jax.lax, "p" + name)

  def terms(*axes, dims=()):
    return P(*dims, unreduced=set(axes), unreduced_kind=kind)

  rows = np.random.default_rng(0).standard_normal((8, 8)).astype(np.float32)
  with jax.set_mesh(explicit_mesh()):
    a = jax.device_put(rows, P("x", "y"))
    by_row = jax.jit(lambda a: reduce(a, axes=(0,), out_sharding=terms("x", dims=("y",))))(a)
    for shard in by_row.addressable_shards:
      i, j = divmod(shard.device.id, 4)
      part = rows[4 * i : 4 * i + 4, 2 * j : 2 * j + 2]
      np.testing.assert_array_equal(np.asarray(shard.data), reference(part, axis=0))
    wanted = reference(rows, axis=0)
    np.testing.assert_array_equal(np.asarray(jax.reshard(by_row, P("y"))), wanted)
    np.testing.assert_array_equal(np.asarray(jax.reshard(by_row, P())), wanted)
    # Into a manual region, which combines them explicitly.
    whole = jax.jit(jax.shard_map(lambda b: combine(b, "x"), out_specs=P("y")))(by_row)
    np.testing.assert_array_equal(np.asarray(whole), wanted)
    # Along two axes, one of which stays unreduced.
    some = jax.jit(lambda a: jax.reshard(
        reduce(a, axes=(0, 1), out_sharding=terms("x", "y")), terms("x")))(a)
    halves = reference(rows.reshape(2, -1), axis=1)
    assert [np.float32(s.data) for s in some.addressable_shards] == [halves[0]] * 4 + [halves[1]] * 4
    np.testing.assert_array_equal(np.asarray(jax.reshard(some, P())), reference(rows))
    scattered = jax.jit(lambda a: jax.reshard(
        reduce(a, axes=(0,), out_sharding=terms("x", dims=("y",))), P(("y", "x"))))(a)
    np.testing.assert_array_equal(np.asarray(scattered), wanted)
