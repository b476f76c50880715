"""Faults: slow devices and links take longer in virtual time, dead ones cause errors that name them, bits flip."""

import collections
import pathlib
import textwrap

import jax
from jax import lax
import jax.numpy as jnp
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
import mpirun
import numpy as np
import pytest
import scenario

import minipod

RING = ("ring:4 hosts:1 links.bandwidth:1GB/s links.latency:1us op_latency:1us launch_latency:1us"
        " memory.bandwidth:1TB/s")
on_a_ring = pytest.mark.pod(RING)
on_a_timed_ring = pytest.mark.pod(RING, time="model")
STRAGGLERS = "- stragglers: {seed: 3, spread: 0.5}"


class Steps:
  """A megabyte on each of four devices, and two programs of it that have run once."""

  def __init__(self):
    mesh = jax.make_mesh((4,), ("i",), axis_types=(jax.sharding.AxisType.Auto,))
    sharding = NamedSharding(mesh, P("i"))
    self.x = jax.make_array_from_callback(
        (4, 250000), sharding, lambda index: np.ones((4, 250000), np.float32)[index])

    @jax.jit
    @jax.shard_map(mesh=mesh, in_specs=P("i"), out_specs=P())
    def step(x):
      return lax.psum(x, "i")

    @jax.jit
    def square(x):
      return x * x

    self.step, self.square = step, square
    jax.block_until_ready((step(self.x), square(self.x)))

  def seconds_of(self, f):
    before = minipod.virtual_time()
    f(self.x).block_until_ready()
    return minipod.virtual_time() - before

  def took(self):
    """Microseconds of an all-reduce of a megabyte from each device."""
    return 1e6 * self.seconds_of(self.step)

  def work(self):
    """Microseconds of work without a collective."""
    return 1e6 * self.seconds_of(self.square)


@pytest.fixture
def steps(pod):
  return Steps()


def refusal(f, *args):
  try:
    jax.block_until_ready(f(*args))
  except jax.errors.JaxRuntimeError as error:
    return str(error)
  return "none"


@on_a_timed_ring
def test_a_slow_device_takes_as_much_longer(pod, steps):
  well = steps.work() - 1
  pod.inject({"device": 2, "slow": 3.5})
  assert (steps.work() - 1) / well == pytest.approx(3.5, abs=5e-4)
  pod.heal()
  assert (steps.work() - 1) / well == pytest.approx(1, abs=5e-4)


@on_a_timed_ring
def test_a_slow_or_lossy_link_lengthens_an_all_reduce(pod, steps):
  well = round(steps.took())
  pod.inject({"link": "slice 0 (2) -x", "bandwidth": 0.5})
  half = round(steps.took())
  pod.heal()
  pod.inject({"link": "slice 0 (2) -x", "loss": 0.5})
  lossy = round(steps.took())
  pod.inject([{"link": "slice 0 (0) +x", "latency": "100us"}])
  late = round(steps.took())
  # A bidirectional ring: 2 * 3/4 of the megabyte, half of it in each direction, in 6 steps.
  assert 1 + 750 + 6 <= well <= 1 + 750 + 8
  assert half == lossy == well + 750
  assert late > lossy + 100


def times_of_work():
  steps = Steps()
  return [steps.work() for _ in range(5)]


def test_stragglers_are_the_same_with_any_number_of_workers(pod):
  times = []
  for workers in (1, 3):
    minipod.use(RING, time="model", workers=workers, faults=STRAGGLERS)
    times.append(times_of_work())
  assert times[0] == times[1] and len(set(times[0])) == 5


@on_a_ring
def test_a_flip_is_one_bit_and_a_guard_sees_it(pod, steps):
  def bits():
    return np.asarray(steps.square(steps.x)).view(np.uint32).ravel()

  well = bits()
  pod.inject({"program": "square", "flip": {"result": 0, "device": 1, "element": 77, "bit": 30}})
  sick = bits()
  assert np.flatnonzero(well ^ sick).tolist() == [250000 + 77]
  assert (well ^ sick)[250000 + 77] == 1 << 30
  assert not jnp.isfinite(sick.view(np.float32)).all() and np.array_equal(bits(), well)
  pod.heal()
  # The flipped bit of an argument stays flipped.
  pod.inject({"program": "square", "flip": {"argument": 0, "device": 3, "bit": 31}})
  steps.square(steps.x).block_until_ready()
  assert np.asarray(steps.x)[3, 0] == -1 and np.asarray(steps.x).sum() == 4 * 250000 - 2


@on_a_ring
def test_a_flip_of_a_result_by_its_name(pod, steps):
  @jax.jit
  def update(x):
    return {"loss": x.sum(), "w": x * 2}

  pod.inject({"program": "update", "flip": {"result": "['w']", "device": 0, "bit": 22}})
  y = update(steps.x)
  assert y["loss"] == 1e6 and np.asarray(y["w"]).ravel()[:2].tolist() == [3, 2]


@on_a_ring
def test_what_is_dead_fails_by_name_and_nothing_else_does(pod, steps):
  pod.inject({"device": 2, "dead": True})
  dead = "device 2 is dead (inject:1)"
  assert f"UNAVAILABLE: jit_step (launch 1): {dead}" in refusal(steps.step, steps.x)
  assert f"{dead}; a transfer from host 0 to device 2 needs it" in refusal(jax.device_put, 1, pod.devices[2])
  assert f"{dead}; a transfer from device 2 to host 0 needs it" in refusal(lambda: np.asarray(steps.x))
  assert f"{dead}; a transfer from device 0 to device 2 needs it" in refusal(
      lambda: jax.device_put(jax.device_put(1, pod.devices[0]), pod.devices[2]))
  assert refusal(steps.square, jax.device_put(3, pod.devices[1])) == "none"
  pod.heal()
  assert refusal(steps.step, steps.x) == "none"


@on_a_ring
def test_a_refused_launch_leaves_donated_arguments(pod, steps):
  def add(x):
    return x + 1

  f, x = jax.jit(add, donate_argnums=0), steps.x
  pod.inject({"device": 0, "dead": True, "program": "add", "until": 1})
  assert "dead" in refusal(f, x) and not x.is_deleted()
  assert np.asarray(f(x))[0, 0] == 2 and x.is_deleted()


@on_a_ring
def test_eager_dispatch_and_pmap_fail_alike(pod):
  f = jax.pmap(lambda x: lax.psum(x, "i"), axis_name="i")
  f(np.ones(4))
  pod.inject({"link": "slice 0 (1) +x", "dead": True})
  said = refusal(f, np.ones(4))
  assert "link 'slice 0 (1) +x' is dead" in said and "all_reduce" in said


@pytest.mark.parametrize("faults, words", [
    ("- {device: 4, dead: true}", "option faults:1: key 'device': expected 0 to 3, got 4"),
    ("- {device: 1, slow: 2}", "need the option time: model"),
    ("- {link: slice 0 (0) +y, dead: true}", "did you mean 'slice 0 (0) +x'?"),
    ("/nowhere/faults.yaml", "/nowhere/faults.yaml"),
])
def test_wrong_faults(faults, words):
  err = scenario.run("jax.devices()", fails=True, devices=None, MINIPOD_FAULTS=faults, MINIPOD_TOPOLOGY=RING)
  assert words in err


TWO_SLICES = "v5e:2x2 slices:2"


def active():
  """Detects which slices are alive, as elastic managers do: with an array on each slice, all made before any is read.
  """
  slices = collections.defaultdict(list)
  for device in jax.devices():
    slices[device.slice_index].append(device)
  results = {i: jax.pmap(lambda x: x + 1, devices=devices)(np.full(len(devices), 99.0))
             for i, devices in slices.items()}
  up = []
  for i, x in results.items():
    try:
      assert np.allclose(jax.block_until_ready(x), 100)
      up.append(i)
    except jax.errors.JaxRuntimeError as error:
      assert str(error).startswith("DATA_LOSS"), error
  return up


@pytest.mark.pod("v5e:2x2", slices=2)
def test_slices_and_hosts_go_and_come_back(pod):
  assert active() == [0, 1]
  pod.inject({"slice": 1, "dead": True})
  assert active() == [0]
  on_all = NamedSharding(Mesh(pod.devices, "x"), P("x"))
  assert refusal(jax.device_put, np.ones(8), on_all).startswith(
      "DATA_LOSS: slice 1 is dead (inject:1); a transfer from host 1 to device 4 needs it")
  pod.heal()
  assert active() == [0, 1]
  pod.inject({"host": 0, "dead": True})
  assert active() == [1]


@pytest.mark.pod("torus:6")
def test_a_pod_from_before_may_lack_the_device(pod):
  f = jax.pmap(lambda x: x + 1)
  held = f(np.ones(6))
  minipod.use("torus:8")
  pod.inject({"device": 7, "dead": True})
  assert "device 7 is dead" in refusal(f, np.ones(8))
  pod.heal()
  assert refusal(f, np.ones(8)) == refusal(np.asarray, held) == "none"
  with pytest.raises(RuntimeError, match="key 'device': expected 0 to 7, got 8"):
    pod.inject({"device": 8, "dead": True})


def test_outages_are_those_of_their_seed(pod):
  def looks(seed):
    minipod.use(TWO_SLICES)
    pod.inject({"outages": {"seed": seed, "every": 12, "length": 4}})
    return [active() for _ in range(36)]

  once, again, other = looks(3), looks(3), looks(4)
  assert once == again != other
  for number in (0, 1):  # each of three outages affects four launches, and the transfers before and between them
    assert 4 <= sum(number not in look for look in once) <= 15


@pytest.mark.parametrize("fault,words", [
    ("{slice: 2, dead: true}", "key 'slice': expected 0 to 1, got 2"),
    ("{host: 9, dead: true}", "key 'host': expected 0 to 1, got 9"),
])
def test_no_such_slice(fault, words):
  err = scenario.run("jax.devices()", fails=True, devices=None, MINIPOD_FAULTS=fault, MINIPOD_TOPOLOGY=TWO_SLICES)
  assert words in err


def test_a_pod_file_has_faults(pod, tmp_path):
  file = tmp_path / "pod.yaml"
  file.write_text("topology: ring\nshape: 4\nfaults:\n  - device: 1\n    dead: true\n")
  minipod.use(str(file))
  f = jax.pmap(lambda x: x + 1)
  assert f"device 1 is dead ({file}:4)" in refusal(f, np.ones(4))
  minipod.heal()
  assert f(np.ones(4)).tolist() == [2, 2, 2, 2]
  file.write_text("topology: ring\nshape: 4\nfaults:\n  - device: 1\n    dad: true\n")
  err = scenario.run("jax.devices()", devices=None, fails=True, MINIPOD_TOPOLOGY=file)
  assert f"{file}:5: key 'dad': unknown" in err


# Data-parallel training with checkpoints, as users write it: a two-layer network on a torus, with a checkpoint every
# second step, from which a restart continues.
TRAIN = """
    import os, sys
    folder, steps = os.environ["CHECKPOINTS"], 10
    mesh = jax.make_mesh((jax.device_count(),), ("data",), axis_types=(jax.sharding.AxisType.Auto,))
    replicated, split = NamedSharding(mesh, P()), NamedSharding(mesh, P("data"))
    main = jax.process_index() == 0

    def put(value, sharding):
      return jax.make_array_from_callback(value.shape, sharding, lambda index: value[index])

    def batch(step):
      rng = np.random.default_rng(step)
      x = rng.standard_normal((64, 16), np.float32)
      return put(x, split), put(np.sin(x.sum(1)), split)

    def loss(w, x, y):
      return ((jnp.tanh(x @ w["a"]) @ w["b"] - y) ** 2).mean()

    @jax.jit
    def train_step(w, x, y):
      value, g = jax.value_and_grad(loss)(w, x, y)
      return jax.tree.map(lambda w, g: w - 0.1 * g, w, g), value

    def save(step, w):
      if main:
        np.savez(f"{folder}/new.npz", **jax.tree.map(np.asarray, w))
        os.replace(f"{folder}/new.npz", f"{folder}/{step}.npz")

    def restore():
      done = sorted(int(name[:-4]) for name in os.listdir(folder) if name[:-4].isdigit())
      if done:
        with np.load(f"{folder}/{done[-1]}.npz") as kept:
          return done[-1], {name: put(kept[name], replicated) for name in kept}
      rng = np.random.default_rng(0)
      w = {"a": rng.standard_normal((16, 32), np.float32), "b": rng.standard_normal(32, np.float32)}
      return 0, {name: put(value, replicated) for name, value in w.items()}

    first, w = restore()
    for step in range(first, steps):
      try:
        w, value = train_step(w, *batch(step))
        value = np.asarray(value)
      except jax.errors.JaxRuntimeError as error:
        print(f"step {step + 1}: {error}")
        sys.exit(3)
      if (step + 1) % 2 == 0:
        save(step + 1, w)
    print(f"from {first}: {value.tobytes().hex()}")
    """
TORUS = {"MINIPOD_TOPOLOGY": "torus:4x2 hosts:1"}
DEAD = "- {link: 'slice 0 (2,1) +x', dead: true, program: train_step, step: 5}"


def train(folder, **variables):
  return scenario.finish(scenario.start(TRAIN, devices=None, CHECKPOINTS=folder, **TORUS, **variables))


def test_a_dead_link_and_a_restart_from_the_checkpoint(tmp_path):
  folders = [tmp_path / name for name in ("well", "sick")]
  for folder in folders:
    folder.mkdir()
  code, out, err = train(folders[0])
  assert code == 0, err
  loss = out.split()[-1]
  assert out.startswith("from 0: ")
  # In the fifth step the link is dead: the exception names the link, and the collective that needs it.
  code, out, err = train(folders[1], MINIPOD_FAULTS=DEAD)
  assert code == 3, err
  assert out.startswith("step 5: UNAVAILABLE: jit_train_step (launch 5): link 'slice 0 (2,1) +x' is dead")
  assert "stablehlo.all_reduce" in out
  # The restart continues from the checkpoint of step 4, and ends with the same bits.
  code, out, err = train(folders[1])
  assert code == 0, err
  assert out.split() == ["from", "4:", loss]


@mpirun.NEEDS_MPIRUN
def test_a_dead_link_fails_in_every_process(tmp_path):
  folders = [tmp_path / name for name in ("well", "sick")]
  for folder in folders:
    folder.mkdir()
  code = textwrap.dedent(TRAIN).replace("sys.exit(3)", "break")
  code = code.replace("print(f\"from", "else: print(f\"from")
  well = mpirun.run_well(2, code, CHECKPOINTS=folders[0], **TORUS)
  loss = well.outs[0].split()[-1]
  sick = mpirun.run_well(2, code, CHECKPOINTS=folders[1], MINIPOD_FAULTS=DEAD, **TORUS)
  for out in sick.outs:
    assert out.startswith("step 5: UNAVAILABLE: jit_train_step (launch 5): link 'slice 0 (2,1) +x'")
  again = mpirun.run_well(2, code, CHECKPOINTS=folders[1], **TORUS)
  assert [out.split() for out in again.outs] == [["from", "4:", loss]] * 2


@mpirun.NEEDS_MPIRUN
def test_a_fault_of_one_process_ends_the_launch_in_all(tmp_path):
  job = mpirun.run_well(2, """
      import minipod
      mesh = jax.make_mesh((4,), ("i",), axis_types=(jax.sharding.AxisType.Auto,))
      x = jax.make_array_from_callback((4,), NamedSharding(mesh, P("i")), lambda i: np.ones(4)[i])
      f = jax.jit(jax.shard_map(lambda x: lax.psum(x, "i"), mesh=mesh, in_specs=P("i"), out_specs=P()))
      f(x).block_until_ready()
      if jax.process_index() == 1:
        minipod.inject({"device": 3, "dead": True, "until": 1})
      try:
        f(x).block_until_ready()
      except jax.errors.JaxRuntimeError as error:
        print("device 3 is dead" in str(error), end=" ")
      print(np.asarray(f(x)))
      """, MINIPOD_TOPOLOGY=RING)
  assert [out.split() for out in job.outs] == [["True", "[4.]"]] * 2


@pytest.mark.pod(RING, time="model", faults=STRAGGLERS, processes=2)
def test_stragglers_are_the_same_in_many_processes(pod, tmp_path):
  script = tmp_path / "work.py"
  here = pathlib.Path(__file__)
  script.write_text(f"import sys; sys.path[:0] = {[str(here.parent), str(here.parents[1])]}\n"
                    "import test_faults\nprint(test_faults.times_of_work())")
  outs = pod.run(script)
  minipod.use(RING, time="model", faults=STRAGGLERS)
  assert outs == [str(times_of_work())] * 2


@mpirun.NEEDS_MPIRUN
def test_a_transfer_between_processes_over_a_dead_link():
  job = mpirun.run_well(2, """
      import minipod
      on = lambda devices: NamedSharding(Mesh(np.array(devices), ("i",)), P("i"))
      d = jax.devices()
      x = jax.make_array_from_callback((4,), on(d[:2]), lambda i: np.arange(4, dtype=np.float32)[i],
                                       dtype=np.float32)
      for _ in range(2):
        try:
          for shard in jax.device_put(x, on(d[2:])).addressable_shards:
            print(np.asarray(shard.data))
        except jax.errors.JaxRuntimeError as error:
          print("link 'slice 0 (1) +x' is dead" in str(error))
        minipod.heal()
      """, MINIPOD_FAULTS="- {link: slice 0 (1) +x, dead: true}", MINIPOD_TOPOLOGY=RING)
  # The sender does not notice it; the receiver gets the error.
  assert job.outs[1].split("\n")[:3] == ["True", "[0. 1.]", "[2. 3.]"]


def test_a_pod_from_before_says_nothing_of_flips():
  """An older client also gets the faults, because it may still be in use, although it has launched nothing since."""
  returncode, out, err = scenario.finish(scenario.start("""
    import minipod
    for _ in range(3):
      minipod.use("torus:4")
      @jax.jit
      def g(x): return x * 2
      x = jax.device_put(np.ones(4, np.float32), jax.devices()[3])
      minipod.inject({"flip": {"result": 0, "device": 3, "element": 2, "bit": 31}, "program": "g"})
      print(g(x)[2])
      minipod.heal()
    """))
  assert returncode == 0 and out.split() == ["-2.0"] * 3 and "no bit" not in err, (out, err)


def test_a_flip_that_met_no_launch_is_reported():
  """The warning comes at the end, or when faults are healed: until then, the launch may still happen."""
  returncode, out, err = scenario.finish(scenario.start("""
    import minipod
    @jax.jit
    def f(x): return x + 1
    x = jax.device_put(np.ones(4, np.float32), jax.devices()[0])
    minipod.inject("{flip: {device: 3, result: 0, bit: 30}, program: f}")
    minipod.inject("{flip: {device: 0, result: 0, bit: 31}, program: f}")
    print(f(x)[0], f(x)[0])
    minipod.heal()
    minipod.inject({"flip": {"device": 0, "result": 0, "bit": 30}, "program": "f", "step": 5})
    print(f(x)[0])
    """))
  assert returncode == 0 and out.split() == ["-2.0", "2.0", "2.0"], err
  lines = [line for line in err.splitlines() if line.startswith("minipod:")]
  assert lines == [
      "minipod: warning: inject:1: no bit was flipped: device 3 had 0 launches of f (the most of any"
      " device: 2), the flip is for number 1",
      "minipod: warning: inject:1: no bit was flipped: device 0 had 1 launches of f (the most of any"
      " device: 1), the flip is for number 5"]
