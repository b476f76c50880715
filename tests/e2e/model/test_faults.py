"""Faults: what is slow takes longer in virtual time, what is dead fails by name, bits flip."""

import textwrap

import mpirun
import pytest
import scenario

RING = {"MINIPOD_TOPOLOGY": "ring:4 hosts:1 links.bandwidth:1GB/s links.latency:1us op_latency:1us"
                            " launch_latency:1us memory.bandwidth:1TB/s"}
TIME = {"MINIPOD_TIME": "model", **RING}

# `took()` is the virtual time of an all-reduce of a megabyte from each device; `work()` that of work.
STEPS = """
    import minipod
    mesh = jax.make_mesh((4,), ("i",), axis_types=(jax.sharding.AxisType.Auto,))
    x = jax.device_put(np.ones((4, 250000), np.float32), NamedSharding(mesh, P("i")))
    @jax.jit
    @jax.shard_map(mesh=mesh, in_specs=P("i"), out_specs=P())
    def step(x):
      return lax.psum(x, "i")
    @jax.jit
    def square(x):
      return x * x
    def time_of(f):
      before = minipod.virtual_time()
      f(x).block_until_ready()
      return (minipod.virtual_time() - before) * 1e6
    def took():
      return time_of(step)
    def work():
      return time_of(square)
    jax.block_until_ready((step(x), square(x)))
    def refusal(f, *args):
      try:
        jax.block_until_ready(f(*args))
      except jax.errors.JaxRuntimeError as error:
        return str(error)
      return "none"
    """


def steps(code, **variables):
  return scenario.run(STEPS + textwrap.indent(textwrap.dedent(code), "    "), devices=None, **variables)


def test_a_slow_device_takes_as_much_longer():
  out = steps("""
      well = work() - 1
      minipod.inject({"device": 2, "slow": 3.5})
      print(round((work() - 1) / well, 3))
      minipod.heal()
      print(round((work() - 1) / well, 3))
      """, **TIME)
  assert out.split() == ["3.5", "1.0"]


def test_a_slow_or_lossy_link_lengthens_an_all_reduce():
  out = steps("""
      print(round(took()))
      minipod.inject({"link": "slice 0 (2) -x", "bandwidth": 0.5})
      print(round(took()))
      minipod.heal()
      minipod.inject({"link": "slice 0 (2) -x", "loss": 0.5})
      print(round(took()))
      minipod.inject([{"link": "slice 0 (0) +x", "latency": "100us"}])
      print(round(took()))
      """, **TIME)
  well, half, lossy, late = map(int, out.split())
  # A two-way ring: 2 * 3/4 of the megabyte, half of it each way, in 6 steps.
  assert 1 + 750 + 6 <= well <= 1 + 750 + 8
  assert half == lossy == well + 750
  assert late > lossy + 100


@pytest.mark.parametrize("workers", [1, 3])
def test_stragglers_are_the_same_with_any_number_of_workers(workers):
  out = steps("""
      print([work().hex() for _ in range(5)])
      """, MINIPOD_WORKERS=workers, MINIPOD_FAULTS="- stragglers: {seed: 3, spread: 0.5}", **TIME)
  assert len(set(out.split(","))) == 5
  expected = test_stragglers_are_the_same_with_any_number_of_workers.__dict__.setdefault("out", out)
  assert out == expected


def test_a_flip_is_one_bit_and_a_guard_sees_it():
  out = steps("""
      y = np.asarray(square(x))
      minipod.inject({"program": "square", "flip": {"result": 0, "device": 1, "element": 77, "bit": 30}})
      z = np.asarray(square(x))
      different = np.flatnonzero((y.view(np.uint32) ^ z.view(np.uint32)).ravel())
      print(different, (y.view(np.uint32) ^ z.view(np.uint32)).ravel()[different])
      print(bool(jnp.isfinite(z).all()), np.array_equal(np.asarray(square(x)), y))
      minipod.heal()
      # The bit of an argument stays flipped.
      minipod.inject({"program": "square", "flip": {"argument": 0, "device": 3, "bit": 31}})
      square(x).block_until_ready()
      print(np.asarray(x)[3, 0], np.asarray(x).sum())
      """, **RING)
  assert out.split("\n")[:3] == [f"[{250000 + 77}] [{1 << 30}]", "False True",
                                 f"-1.0 {4 * 250000 - 2}.0"]


def test_a_flip_of_a_result_by_its_name():
  out = steps("""
      @jax.jit
      def update(x):
        return {"loss": x.sum(), "w": x * 2}
      minipod.inject({"program": "update", "flip": {"result": "['w']", "device": 0, "bit": 22}})
      y = update(x)
      print(y["loss"], np.asarray(y["w"]).ravel()[:2])
      """, **RING)
  assert out.split("\n")[0] == "1e+06 [3. 2.]"


def test_what_is_dead_fails_by_name_and_nothing_else_does():
  out = steps("""
      minipod.inject({"device": 2, "dead": True})
      print(refusal(step, x))
      print(refusal(jax.device_put, 1, jax.devices()[2]))
      print(refusal(lambda: np.asarray(x)))
      print(refusal(lambda: jax.device_put(jax.device_put(1, jax.devices()[0]), jax.devices()[2])))
      print(refusal(square, jax.device_put(3, jax.devices()[1])))
      minipod.heal()
      print(refusal(step, x))
      """, **RING).split("\n")
  assert "UNAVAILABLE: jit_step (launch 1): device 2 is dead (inject:1)" in out[0]
  assert "device 2 is dead (inject:1); a transfer from host 0 to device 2 needs it" in out[1]
  assert "device 2 is dead (inject:1); a transfer from device 2 to host 0 needs it" in out[2]
  assert "device 2 is dead (inject:1); a transfer from device 0 to device 2 needs it" in out[3]
  assert out[4:6] == ["none", "none"]


def test_a_refused_launch_leaves_donated_arguments():
  out = steps("""
      def add(x):
        return x + 1
      f = jax.jit(add, donate_argnums=0)
      minipod.inject({"device": 0, "dead": True, "program": "add", "until": 1})
      print("dead" in refusal(f, x))
      print(x.is_deleted())
      print(np.asarray(f(x))[0, 0], x.is_deleted())
      """, **RING)
  assert out.split("\n")[:3] == ["True", "False", "2.0 True"]


def test_eager_dispatch_and_pmap_fail_alike():
  out = scenario.run("""
      import minipod
      f = jax.pmap(lambda x: lax.psum(x, "i"), axis_name="i")
      f(np.ones(4))
      minipod.inject({"link": "slice 0 (1) +x", "dead": True})
      try:
        print(f(np.ones(4)))
      except jax.errors.JaxRuntimeError as error:
        print(error)
      """, devices=None, **RING)
  assert "link 'slice 0 (1) +x' is dead" in out and "all_reduce" in out


@pytest.mark.parametrize("faults, words", [
    ("- {device: 4, dead: true}", "option faults:1: key 'device': expected 0 to 3, got 4"),
    ("- {device: 1, slow: 2}", "need the option time: model"),
    ("- {link: slice 0 (0) +y, dead: true}", "did you mean 'slice 0 (0) +x'?"),
    ("/nowhere/faults.yaml", "/nowhere/faults.yaml"),
])
def test_wrong_faults(faults, words):
  err = scenario.run("jax.devices()", fails=True, devices=None, MINIPOD_FAULTS=faults, **RING)
  assert words in err


TWO_SLICES = "v5e:2x2 slices:2"
# Which slices are there, as elastic managers find out: by an array on each, of which none is read at once.
ACTIVE = """
    import collections, minipod
    slices = collections.defaultdict(list)
    for d in jax.devices():
      slices[d.slice_index].append(d)
    def active(found="DATA_LOSS"):
      results = {i: jax.pmap(lambda x: x + 1, devices=ds)(np.full(len(ds), 99.0)) for i, ds in slices.items()}
      up = []
      for i, x in results.items():
        try:
          assert np.allclose(jax.block_until_ready(x), 100)
          up.append(i)
        except jax.errors.JaxRuntimeError as error:
          assert str(error).startswith(found), error
      return up
    """


def test_slices_and_hosts_go_and_come_back():
  out = scenario.run(ACTIVE + """
    print(active())
    minipod.inject({"slice": 1, "dead": True})
    print(active())
    x = jax.device_put(np.ones(8), NamedSharding(jax.sharding.Mesh(jax.devices(), "x"), P("x")))
    try: jax.block_until_ready(x)
    except jax.errors.JaxRuntimeError as error: print(error)
    minipod.heal()
    print(active())
    minipod.inject({"host": 0, "dead": True})
    print(active())
    """, devices=None, MINIPOD_TOPOLOGY=TWO_SLICES)
  lines = out.splitlines()
  assert lines[:2] + lines[3:] == ["[0, 1]", "[0]", "[0, 1]", "[1]"]
  assert lines[2].startswith("DATA_LOSS: slice 1 is dead (inject:1); a transfer from host 1 to device 4 needs it")


def test_outages_are_those_of_their_seed():
  code = ACTIVE + """
    minipod.inject({"outages": {"seed": SEED, "every": 12, "length": 4}})
    print([active() for _ in range(36)])
    """
  once, again, other = (
      scenario.run(code.replace("SEED", seed), devices=None, MINIPOD_TOPOLOGY=TWO_SLICES) for seed in ("3", "3", "4"))
  assert once == again != other
  looks = eval(once)  # a list of lists of numbers
  for number in (0, 1):  # each of three outages meets four launches, and the transfers before and between them
    assert 4 <= sum(number not in look for look in looks) <= 15


@pytest.mark.parametrize("fault,words", [
    ("{slice: 2, dead: true}", "key 'slice': expected 0 to 1, got 2"),
    ("{host: 9, dead: true}", "key 'host': expected 0 to 1, got 9"),
])
def test_no_such_slice(fault, words):
  err = scenario.run("jax.devices()", fails=True, devices=None, MINIPOD_FAULTS=fault, MINIPOD_TOPOLOGY=TWO_SLICES)
  assert words in err


def test_a_pod_file_has_faults(tmp_path):
  file = tmp_path / "pod.yaml"
  file.write_text("topology: ring\nshape: 4\nfaults:\n  - device: 1\n    dead: true\n")
  code = """
      import minipod
      f = jax.pmap(lambda x: x + 1)
      try:
        jax.block_until_ready(f(np.ones(4)))
      except jax.errors.JaxRuntimeError as error:
        print(error)
      minipod.heal()
      print(f(np.ones(4)))
      """
  out = scenario.run(code, devices=None, MINIPOD_TOPOLOGY=file)
  assert f"device 1 is dead ({file}:4)" in out and "[2. 2. 2. 2.]" in out
  file.write_text("topology: ring\nshape: 4\nfaults:\n  - device: 1\n    dad: true\n")
  err = scenario.run("jax.devices()", devices=None, fails=True, MINIPOD_TOPOLOGY=file)
  assert f"{file}:5: key 'dad': unknown" in err


# Data-parallel training with checkpoints, as a user would write it: a two-layer network on a torus,
# a checkpoint every second step, from which a restart goes on.
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
  # In the fifth step the link is dead: the exception names it, and the collective that needs it.
  code, out, err = train(folders[1], MINIPOD_FAULTS=DEAD)
  assert code == 3, err
  assert out.startswith("step 5: UNAVAILABLE: jit_train_step (launch 5): link 'slice 0 (2,1) +x' is dead")
  assert "stablehlo.all_reduce" in out
  # The restart goes on from the checkpoint of step 4, and ends with the same bits.
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
      """, **RING)
  assert [out.split() for out in job.outs] == [["True", "[4.]"]] * 2


@mpirun.NEEDS_MPIRUN
def test_stragglers_are_the_same_in_many_processes():
  code = textwrap.dedent(STEPS.replace(
      'jax.device_put(np.ones((4, 250000), np.float32), NamedSharding(mesh, P("i")))',
      'jax.make_array_from_callback((4, 250000), NamedSharding(mesh, P("i")),'
      ' lambda i: np.ones((4, 250000), np.float32)[i])')) + "\nprint(took().hex(), work().hex())"
  variables = {"MINIPOD_FAULTS": "- stragglers: {seed: 3, spread: 0.5}", **TIME}
  alone = scenario.run(code, devices=None, **variables)
  job = mpirun.run_well(2, code, **variables)
  assert job.outs == [alone, alone]


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
      """, MINIPOD_FAULTS="- {link: slice 0 (1) +x, dead: true}", **RING)
  # Who sends notices nothing; who receives gets the reason.
  assert job.outs[1].split("\n")[:3] == ["True", "[0. 1.]", "[2. 3.]"]


def test_a_flip_that_met_no_launch_is_told():
  """At the end, or when faults are healed: until then the launch may come."""
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
