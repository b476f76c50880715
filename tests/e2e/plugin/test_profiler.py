"""Traces show the launches of programs, on the devices where they ran."""

import scenario


def test_a_trace_shows_launches_by_device(tmp_path):
  scenario.run("""
      import glob, os
      f = jax.pmap(lambda x: lax.psum(x @ x, "i"), axis_name="i")
      x = jnp.ones((4, 8, 8))
      f(x)
      with jax.profiler.trace(os.environ["TRACES"]):
        for _ in range(3):
          f(x).block_until_ready()
        jnp.sin(x).block_until_ready()
      path, = glob.glob(os.environ["TRACES"] + "/**/*.xplane.pb", recursive=True)
      planes = {p.name: [e for line in p.lines for e in line.events]
                for p in jax.profiler.ProfileData.from_file(path).planes
                if "CUSTOM:minipod" in p.name}
      assert set(planes) == {f"/device:CUSTOM:minipod:{i}" for i in range(4)}, planes
      for name, events in planes.items():
        assert sum("fun" in e.name or "lambda" in e.name for e in events) == 3, (name, events)
        ends = [e.start_ns + e.duration_ns for e in events]
        assert all(e.start_ns >= end for e, end in zip(events[1:], ends)), (name, events)
      assert any("sin" in e.name for e in planes["/device:CUSTOM:minipod:0"])
      """, TRACES=tmp_path)


def test_a_trace_knows_the_names_of_ops(tmp_path):
  scenario.run("""
      import glob, os
      def f(x):
        with jax.named_scope("a_name_of_mine"):
          return jnp.sin(x) @ x
      f = jax.jit(f)
      x = jnp.ones((8, 8))
      f(x)
      with jax.profiler.trace(os.environ["TRACES"]):
        f(x).block_until_ready()
      path, = glob.glob(os.environ["TRACES"] + "/**/*.xplane.pb", recursive=True)
      with open(path, "rb") as file:
        assert b"a_name_of_mine" in file.read()
      """, TRACES=tmp_path)
