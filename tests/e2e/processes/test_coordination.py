"""The parts of JAX's distributed client that libraries use, under mpirun without jax.distributed."""

import threading
import time

import mpirun
import pytest
from minipod import coordination


class Error(Exception):
  pass


@pytest.fixture(name="clients")
def clients_of_three():
  service = coordination.Service(3)
  clients = [coordination.Client(i, Error, None if i else service, service.address())
             for i in range(3)]
  yield clients
  for client in reversed(clients):
    client.shutdown()


def together(*calls):
  """Runs the calls at the same time; their results, exceptions among them."""
  results = [None] * len(calls)

  def run(i):
    try:
      results[i] = calls[i]()
    except Error as error:
      results[i] = error

  threads = [threading.Thread(target=run, args=(i,)) for i in range(len(calls))]
  for thread in threads:
    thread.start()
  for thread in threads:
    thread.join()
  return results


def test_values(clients):
  one, two, three = clients
  two.key_value_set("run/a", "ä")
  three.key_value_set_bytes("run/b", bytes(range(256)))
  assert one.blocking_key_value_get("run/a", 1000) == "ä" == three.key_value_try_get("run/a")
  assert two.blocking_key_value_get_bytes("run/b", 1000) == bytes(range(256))
  assert [key for key, _ in two.key_value_dir_get("run")] == ["run/a", "run/b"]
  with pytest.raises(Error, match="ALREADY_EXISTS: the key 'run/a'"):
    one.key_value_set("run/a", "")
  one.key_value_set("run/a", "new", allow_overwrite=True)
  assert two.key_value_try_get("run/a") == "new"
  two.key_value_delete("run")
  with pytest.raises(Error, match="NOT_FOUND"):
    three.key_value_try_get("run/a")
  with pytest.raises(Error, match="DEADLINE_EXCEEDED.*within 0.01 s"):
    three.blocking_key_value_get("run/a", 10)
  assert [client.key_value_increment("n", 2) for client in clients] == [2, 4, 6]


def test_a_value_that_comes_later(clients):
  got = together(lambda: clients[1].blocking_key_value_get("k", 60000),
                 lambda: clients[2].key_value_set("k", "v"))
  assert got == ["v", None]


def test_barriers(clients):
  for _ in range(3):  # the same name again
    assert together(*(lambda c=c: c.wait_at_barrier("b", 60000) for c in clients)) == [None] * 3
  some = together(*(lambda c=c: c.wait_at_barrier("c", 60000, [0, 2]) for c in clients[::2]))
  assert some == [None, None]
  assert together(*(lambda c=c: c.get_live_nodes([0, 1, 2]) for c in clients)) == [
      {0: 1, 1: 1, 2: 1}] * 3
  with pytest.raises(Error, match="INVALID_ARGUMENT.*process 1"):
    clients[1].wait_at_barrier("d", 1000, [0, 2])


def test_a_barrier_that_one_process_misses(clients):
  one, two, three = clients

  def once_the_other_has_come():
    while 1 not in getattr(one._service._barriers.get("barrier b"), "came", ()):
      time.sleep(0.001)
    one.wait_at_barrier("b", 50)

  assert [str(error) for error in together(once_the_other_has_come,
                                           lambda: two.wait_at_barrier("b", 60000))] == [
      "DEADLINE_EXCEEDED: barrier 'barrier b': the processes [2] have not come within 0.05 s"] * 2
  with pytest.raises(Error, match=r"\[2\] have not come"):
    three.wait_at_barrier("b", 60000)
  three.shutdown()
  with pytest.raises(Error, match=r"UNAVAILABLE: barrier 'barrier c': the processes \[2\] have"):
    one.wait_at_barrier("c", 60000)
  assert together(*(lambda c=c: c.get_live_nodes([0, 1, 2]) for c in clients[:2])) == [
      {0: 1, 1: 1}] * 2


def test_a_stranger_is_turned_away(clients):
  stranger = coordination.Client(
      1, Error, None, clients[0]._service.address().replace('"secret": "', '"secret": "00')[:-4] + '"}')
  with pytest.raises(Error, match="UNAVAILABLE: process 0, .*cannot be reached"):
    stranger.key_value_set("k", "v")


@mpirun.NEEDS_MPIRUN
def test_in_jax():
  job = mpirun.run_well(2, """
      from jax.experimental import multihost_utils
      from jax._src import distributed
      first = len(jax.devices())
      state = distributed.global_state
      client = state.client
      client.key_value_set(f"from {state.process_id}", str(jax.process_index()))
      other = 1 - jax.process_index()
      got = client.blocking_key_value_get(f"from {other}", 60000)
      client.wait_at_barrier("b", 60000)
      with multihost_utils.live_devices(jax.devices()) as live:
        print(first, len(live), got == str(other), len(jax.devices("cpu")),
              multihost_utils.reached_preemption_sync_point(3), jax.distributed.is_initialized())
      import jax.extend.backend
      jax.extend.backend.clear_backends()
      print(len(jax.devices()), float(jnp.arange(4).sum()), jax.process_count())
      """, 2)
  assert job.outs == ["4 4 True 1 False True\n4 6.0 2\n"] * 2
  assert job.err == ""


ORBAX = """
    import orbax.checkpoint as ocp, os
    mesh = Mesh(np.array(jax.devices()).reshape(2, 2), ("x", "y"))
    put = lambda a, *spec: jax.make_array_from_callback(
        a.shape, NamedSharding(mesh, P(*spec)), lambda i: a[i])
    tree = {"w": put(np.arange(64.0).reshape(8, 8), "x", "y"), "b": put(np.arange(8), None), "n": 3}
    folder = os.environ["CHECKPOINT"]
    with ocp.StandardCheckpointer() as saver:
      saver.save(folder + "/c", tree)
      saver.wait_until_finished()
      shapes = jax.tree.map(ocp.utils.to_shape_dtype_struct, tree)
      shapes["w"] = jax.ShapeDtypeStruct((8, 8), shapes["w"].dtype,
                                         sharding=NamedSharding(mesh, P("y", None)))
      back = saver.restore(folder + "/c", shapes)
    parts = [np.asarray(s.data) for s in back["w"].addressable_shards]
    whole = np.arange(64.0).reshape(8, 8)
    print(all((p == whole[s.index]).all() for p, s in zip(parts, back["w"].addressable_shards)),
          float(jax.jit(jnp.sum)(back["w"])), back["n"])
    """


@mpirun.NEEDS_MPIRUN
def test_orbax(tmp_path):
  pytest.importorskip("orbax.checkpoint")
  job = mpirun.run_well(2, ORBAX, 2, CHECKPOINT=str(tmp_path))
  assert job.outs == ["True 2016.0 3\n"] * 2
