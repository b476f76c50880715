"""Hosts in virtual time: arrays that are read, put and offloaded, and the cost of launches."""

import textwrap

import mpirun
import pytest
import scenario

# 1 GB/s between a host and each of its devices, 2 GB/s for all; launches cost the host 100 us.
FIGURES = """
compiler: plain
host: {dispatch: 100us, bandwidth: 2GB/s}
"""
POD = ("v5e:2x2 op_latency:1us host_link.latency:2us host_link.bandwidth:1GB/s links.latency:1us "
       "links.bandwidth:100GB/s memory.bandwidth:1TB/s flops.f32:1T")
PRELUDE = """
    import minipod
    mesh = jax.make_mesh((4,), ("i",))
    split, whole = NamedSharding(mesh, P("i")), NamedSharding(mesh, P())
    first = jax.sharding.SingleDeviceSharding(jax.devices()[0])
    def took(what):
      before = minipod.virtual_time()
      what()
      return round((minipod.virtual_time() - before) * 1e6)
    """


@pytest.fixture
def pod(tmp_path):
  (tmp_path / "chip.yaml").write_text(FIGURES)
  return {"MINIPOD_TOPOLOGY": f"{POD} chip:{tmp_path / 'chip.yaml'}", "MINIPOD_TIME": "model"}


def run(pod, *codes, **variables):
  code = "".join(map(textwrap.dedent, (PRELUDE, *codes)))
  return scenario.run(code, devices=None, **{**pod, **variables}).split()


MEGABYTE = """
    x = jax.device_put(np.ones(250000, np.float32), first)
    x = jax.jit(lambda x: x + 1)(x).block_until_ready()
    """


@pytest.mark.parametrize("read", ["np.asarray(x)", "jax.device_get(x)", "x.tolist()", "np.asarray(x.addressable_shards[0].data)",
                                  "np.from_dlpack(x)", "x.copy_to_host_async(), np.asarray(x)"])
def test_what_is_read_comes_over_the_link_once(pod, read):
  assert run(pod, MEGABYTE, f"""
      print(took(lambda: ({read})))
      print(took(lambda: ({read})), took(lambda: np.asarray(x)), took(lambda: jax.device_get(x)))
      print(took(x.block_until_ready))
      """) == ["1002", "0", "0", "0", "0"]


def test_every_new_array_is_read(pod):
  assert run(pod, MEGABYTE, """
      np.asarray(x)
      for _ in range(2):
        x = jax.jit(lambda x: x + 1)(x).block_until_ready()
        print(took(lambda: np.asarray(x)))
      print(took(lambda: bool(x[0] == 4)) > 100)
      """) == ["1002", "1002", "True"]


def test_devices_are_read_together(pod):
  times = run(pod, """
      x = jax.device_put(np.ones((4, 250000), np.float32), split)
      y = jax.jit(lambda x: x + 1)(x).block_until_ready()
      z = jax.jit(lambda x: x + 2)(x).block_until_ready()
      w = jax.jit(lambda x: x.sum(0), out_shardings=whole)(x).block_until_ready()
      print(took(lambda: np.asarray(y)))  # four megabytes at 2 GB/s
      print(took(lambda: [np.asarray(z.addressable_shards[i].data) for i in (1, 2)]))
      print(took(lambda: np.asarray(z)))  # the host has two of four
      print(took(lambda: np.asarray(w)))  # of one device
      """)
  # Latencies of consecutive reads overlap with the bytes of other reads.
  assert list(map(int, times)) == pytest.approx([2002, 1002, 1002, 1002], abs=2)


def test_both_ways(pod):
  assert run(pod, """
      h = np.ones((4, 250000), np.float32)
      print(took(lambda: jax.device_put(h[0], first).block_until_ready()))
      print(took(lambda: jax.device_put(h, split).block_until_ready()))
      print(took(lambda: jax.device_put([h[0], h[1]], [first, first])[1].block_until_ready()))
      """) == ["1002", "2002", "2004"]


def test_offloading(pod):
  assert run(pod, MEGABYTE, """
      pinned = first.with_memory_kind("pinned_host")
      other = jax.sharding.SingleDeviceSharding(jax.devices()[1])
      print(took(lambda: globals().update(p=jax.device_put(x, pinned))))  # nobody waits
      print(took(p.block_until_ready), took(lambda: np.asarray(p)))
      print(took(lambda: globals().update(d=jax.device_put(p, first).block_until_ready())))
      print(took(lambda: jax.device_put(p, other).block_until_ready()))
      y = jax.device_put(np.ones((4, 250000), np.float32), split).block_until_ready()
      print(took(lambda: globals().update(q=jax.device_put(y, split.with_memory_kind("pinned_host")).block_until_ready())))
      print(took(lambda: jax.device_put(q, split).block_until_ready()))
      print(np.asarray(d)[0], np.asarray(q).sum() == 1000000)
      """) == ["0", "1002", "0", "1002", "1002", "2002", "2002", "2.0", "True"]


def test_programs_with_arguments_and_results_on_the_host(pod):
  out = run(pod, """
      pinned = split.with_memory_kind("pinned_host")
      x = jax.device_put(np.ones((4, 250000), np.float32), split).block_until_ready()
      step = jax.jit(lambda x: x * 2)
      away = jax.jit(lambda x: x * 2, out_shardings=pinned)
      back = jax.jit(lambda x: jax.device_put(x, split) * 2, out_shardings=split)
      jax.block_until_ready([step(x), away(x)])
      print(took(lambda: step(x).block_until_ready()))
      print(took(lambda: globals().update(y=away(x).block_until_ready())), took(lambda: np.asarray(y)))
      print(took(lambda: back(y).block_until_ready()), took(lambda: back(y).block_until_ready()))
      """)
  step, away, read, back, again = map(int, out)
  assert read == 0 and [away, back, again] == pytest.approx([step + 2002] * 3, abs=2)


def test_a_copy_overlaps_compute(pod):
  assert run(pod, MEGABYTE, """
      step = jax.jit(lambda a: a @ a)
      a = jax.device_put(np.ones((2000, 2000), np.float32), first)
      step(a).block_until_ready()
      alone = took(lambda: step(a).block_until_ready())
      def both():
        p = jax.device_put(x, first.with_memory_kind("pinned_host"))
        b = step(a)
        jax.block_until_ready([p, b])
      print(alone > 2000, took(both) == alone)
      """) == ["True", "True"]


def test_a_loop_that_reads_each_loss(pod):
  loop = """
      step = jax.jit(lambda x: (x + 1, x.sum()))
      x = jax.device_put(np.ones(1000, np.float32), first)
      step(x)[1].block_until_ready()
      def loop(read):
        y = x
        for _ in range(10):
          y, loss = step(y)
          if read: float(loss)
        loss.block_until_ready()
      print(took(lambda: loop(False)), took(lambda: loop(True)))
      """
  ahead, waiting = map(int, run(pod, loop))
  # The host is slower than the device; a script that reads each loss also waits for the device and the transfer.
  assert 1000 < ahead < 1020 and ahead + 10 * 2 <= waiting < ahead + 10 * 20


JOB = PRELUDE + """
    a = jax.make_array_from_callback((4, 250000), split, lambda index: np.ones((1, 250000), np.float32))
    for _ in range(3):
      a, loss = jax.jit(lambda a: (a + 1, a.sum()), out_shardings=(split, whole))(a)
      print(float(loss))
    for s in a.addressable_shards:
      jax.device_put(s.data, jax.sharding.SingleDeviceSharding(s.device, memory_kind="pinned_host"))
    [np.asarray(s.data) for s in a.addressable_shards]
    away = jax.jit(lambda a: a * 2, out_shardings=split.with_memory_kind("pinned_host"))(a)
    a = jax.jit(lambda a: jax.device_put(a, split) + 1, out_shardings=split)(away)
    float(jax.jit(jnp.sum)(a))
    print(minipod.virtual_time().hex())
    """


@mpirun.NEEDS_MPIRUN
@pytest.mark.parametrize("ranks", [2, 4])
def test_any_number_of_processes(pod, ranks):
  alone = scenario.run(textwrap.dedent(JOB), devices=None, **pod)
  job = mpirun.run_well(ranks, textwrap.dedent(JOB), **pod)
  assert job.outs == [alone] * ranks


def test_the_same_with_values_and_without(pod):
  codes = MEGABYTE, """
      jax.device_put(x, first.with_memory_kind("pinned_host")).block_until_ready()
      np.asarray(jax.device_put(np.ones(8, np.float32), first) * 2)
      print(minipod.virtual_time().hex())
      """
  assert run(pod, *codes) == run(pod, *codes, MINIPOD_VALUES="shapes")


def test_chips_have_figures():
  def put_and_get(name):
    out = scenario.run("""
        import minipod
        jax.devices()
        x = np.ones(16 << 20, np.float32)
        for step in lambda: jax.device_put(x).block_until_ready(), lambda: np.asarray(y):
          before = minipod.virtual_time()
          y = step()
          print(minipod.virtual_time() - before)
        """, devices=None, MINIPOD_TOPOLOGY=name, MINIPOD_TIME="model")
    return [float(line) for line in out.split()]
  put, get = put_and_get("v5e:1x1")
  assert put == pytest.approx(4475e-6, rel=1e-3) and get == pytest.approx(put, rel=1e-6)
  put, get = put_and_get("h100:1")
  assert put == pytest.approx(2**26 / 11e9, rel=1e-2) and get == pytest.approx(2**26 / 2.7e9, rel=1e-2)


# A scan of layers whose inputs are kept for the backward pass: on the device, or on its host.
SCAN = """
    from jax.ad_checkpoint import checkpoint_name
    policies = jax.checkpoint_policies
    def layer(x, w):
      x = checkpoint_name(x, "input")
      return x + jnp.tanh(x @ w[0]) @ w[1]
    def trained(policy):
      def loss(ws, x):
        y, _ = jax.lax.scan(lambda x, w: (jax.checkpoint(layer, policy=policy)(x, w), None), x, ws)
        return (y * y).mean()
      return jax.jit(jax.grad(loss)).lower(ws, x).compile()
    rng = np.random.default_rng(0)
    ws = [jnp.asarray(rng.normal(size=(8, *s)), jnp.float32) / 16 for s in ((256, 512), (512, 256))]
    x = jnp.asarray(rng.normal(size=(512, 256)), jnp.float32)
    kept = trained(policies.save_only_these_names("input"))
    away = trained(policies.save_and_offload_only_these_names(
        names_which_can_be_saved=[], names_which_can_be_offloaded=["input"], offload_src="device",
        offload_dst="pinned_host"))
    """


def test_activations_on_the_host():
  out = scenario.run(textwrap.dedent(PRELUDE.replace("(4,)", "(1,)")) + textwrap.dedent(SCAN) + textwrap.dedent("""
      a, b = kept.memory_analysis(), away.memory_analysis()
      print(b.host_temp_size_in_bytes, a.host_temp_size_in_bytes, a.temp_size_in_bytes - b.temp_size_in_bytes)
      x0, x1 = kept(ws, x), away(ws, x)
      print(all(np.array_equal(p, q) for p, q in zip(x0, x1)))
      jax.block_until_ready([x0, x1])
      t, u = took(lambda: jax.block_until_ready(kept(ws, x))), took(lambda: jax.block_until_ready(away(ws, x)))
      print(t, u)
      print(minipod.time_report())
      """), devices=None, MINIPOD_TOPOLOGY="v6e:1x1", MINIPOD_TIME="model")
  sizes, same, times, report = out.split("\n", 3)
  stack = 8 * 512 * 256 * 4
  there, nothing, less = map(int, sizes.split())
  # The stack of 4 MiB fits into VMEM, so the device's HBM has it in neither program.
  assert (there, nothing, same) == (stack, 0, "True") and abs(less) <= 1024
  kept, away = map(int, times.split())
  # The values that return are needed at once; the transfers to the host are partly hidden.
  assert kept + 8 * 16 < away < kept + 16 * 40
  rows = [line.split() for line in report.splitlines() if line.split()[:1] in (["from"], ["to"])]
  assert sorted(r[:3] for r in rows) == [["from", "host", "16"], ["to", "host", "16"]]
  assert "memory of it at its host: arguments 0 B, other results 0 B, temporaries 4.19 MB" in report


# Moments of an optimizer that are kept on the host, move to the device for the update, and back.
STATE = """
    def update(w, m, g):
      m = 0.9 * jax.device_put(m, split) + g
      return w - 0.1 * m, m
    pinned = split.with_memory_kind("pinned_host")
    def step(w, m):
      for i in range(4):
        w[i], m[i] = update(w[i], m[i], w[i] @ w[i] if heavy else w[i])
      return w, m
    def state(kind):
      make = lambda v: [jax.device_put(np.full((512, 128), v, np.float32), s) for s in (split, kind) for _ in range(4)]
      all = make(1)
      return all[:4], all[4:]
    """


def test_an_optimizer_with_its_state_on_the_host(pod):
  out = run(pod, STATE, """
      heavy = False
      for kind in (split, pinned):
        w, m = state(kind)
        f = jax.jit(step, donate_argnums=(0, 1), out_shardings=(split, kind)).lower(w, m).compile()
        s = f.memory_analysis()
        print(s.argument_size_in_bytes, s.host_argument_size_in_bytes, s.host_output_size_in_bytes, s.host_alias_size_in_bytes)
        w, m = jax.block_until_ready(f(w, m))
        print(took(lambda: globals().update(o=jax.block_until_ready(f(w, m)))))
        print(o[1][0].sharding.memory_kind, float(np.asarray(o[0][0])[0, 0]), float(np.asarray(o[1][3])[0, 0]))
      """)
  here, there = out[:8], out[8:]
  part = 4 * 128 * 128 * 4
  assert list(map(int, here[:4])) == [2 * part, 0, 0, 0] and list(map(int, there[:4])) == [part] * 4
  assert (here[5], there[5], here[6:]) == ("device", "pinned_host", there[6:])
  # Eight copies of 64 KiB; each of four devices gets half a gigabyte per second while all copy.
  assert int(there[4]) - int(here[4]) == pytest.approx(8 * (65536 / 500 + 2), abs=4)


def test_host_memory_has_a_limit(pod):
  pod["MINIPOD_TOPOLOGY"] += " memory.pinned_host:400KiB"
  error = " ".join(run(pod, STATE, """
      heavy = False
      try:
        jax.jit(step, out_shardings=(split, pinned)).lower(*state(pinned)).compile()
      except Exception as error:
        print(error)
      """))
  assert "memory.pinned_host" in error and "it needs 0.50 MiB of 0.39 MiB" in error


SHARED = """
    import minipod
    x = np.ones(16 << 20, np.float32)
    one = jax.sharding.SingleDeviceSharding
    jax.block_until_ready([jax.device_put(x[:8], d) for d in jax.devices()])
    def took(what):
      before = minipod.virtual_time()
      y = jax.block_until_ready(what())
      return minipod.virtual_time() - before, y
    def put(count):
      return took(lambda: [jax.device_put(x, d) for d in jax.devices()[:count]])
    for count in 1, 4:
      seconds, arrays = put(count)
      print(seconds)
      print(took(lambda: [np.asarray(y) for y in arrays])[0])
    held = [jax.device_put(y, one(y.device, memory_kind="pinned_host")) for y in put(4)[1]]
    jax.block_until_ready(held)
    print(took(lambda: [jax.device_put(h, one(d)) for h, d in zip(held, jax.devices())])[0])
    """


# Arrays of the process pass through the host's memory three times; its bandwidth is 164 GB/s if the description has
# none.
@pytest.mark.parametrize("name, slower", [("v6e:2x2", 2**26 * 3 * 4 / 163.84e9), ("v5e:2x2", 2**26 * 3 * 4 / 163.84e9), ("h100:4", None)])
def test_devices_share_the_memory_of_their_host(name, slower):
  out = scenario.run(textwrap.dedent(SHARED), devices=None, MINIPOD_TOPOLOGY=name, MINIPOD_TIME="model")
  put, get, put_4, get_4, pinned_4 = map(float, out.split())
  if slower is None:
    assert put_4 == pytest.approx(put) and get_4 == pytest.approx(get)
  else:
    assert put < 0.95 * put_4 and put_4 == pytest.approx(slower, rel=1e-3)
    assert get < 0.95 * get_4 and get_4 == pytest.approx(slower, rel=1e-3)
    assert pinned_4 == pytest.approx(put, rel=0.01)  # the link's own rate
