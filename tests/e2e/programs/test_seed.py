"""Programs that new users run first, as they would type them, on four devices."""

import scenario


def test_add_eagerly():
  assert scenario.run("print(jnp.add(1, 1))").split() == ["2"]


def test_jit_of_a_python_number():
  assert scenario.run("print(jax.jit(lambda x: x * 2)(1.))").split() == ["2.0"]


def test_pmap_with_psum():
  out = scenario.run("""
      f = jax.pmap(lambda x: x + lax.psum(x, 'i'), axis_name='i')
      print(f(jnp.arange(4)))
      print(f(jnp.arange(4))[0], f(jnp.arange(4)).mean(), f(jnp.arange(4)) * 2)
      """)
  assert out.splitlines() == ["[6 7 8 9]", "6 7.5 [12 14 16 18]"]


def test_power_op_by_op():
  out = scenario.run("""
      with jax.disable_jit():
        print(jnp.power(jnp.array([1., 2., 3.]), 2.))
      print(jnp.power(jnp.array([1., 2., 3.]), 2.))
      """)
  assert out.splitlines() == ["[1. 4. 9.]"] * 2


def test_devices_with_attributes():
  out = scenario.run("""
      print(jax.default_backend(), len(jax.devices()), jax.local_device_count())
      for i, d in enumerate(jax.devices()):
        assert d.id == i and d.process_index == 0 and d.platform == 'minipod', d
        assert d.device_kind and d.device_kind != 'cpu'
        assert [type(c) for c in d.coords] and all(isinstance(c, int) for c in d.coords)
        assert isinstance(d.core_on_chip, int) and isinstance(d.slice_index, int)
        assert isinstance(d.host_index, int)
        assert {m.kind for m in d.addressable_memories()} == {
            'device', 'pinned_host', 'unpinned_host'}
        assert d.default_memory().kind == 'device'
        repr(d), str(d), repr(d.default_memory()), str(d.default_memory())
      print(len({(tuple(d.coords), d.core_on_chip, d.slice_index) for d in jax.devices()}))
      """)
  assert out.splitlines() == ["minipod 4 4", "4"]


def test_default_platform_without_any_setting():
  out = scenario.run("print(jax.default_backend(), jax.devices('cpu')[0].platform)",
                     JAX_PLATFORMS="")
  assert out.split() == ["minipod", "cpu"]


def test_named_alone_it_keeps_a_cpu_device():
  assert scenario.run("print(jax.default_backend(), jax.devices('cpu')[0].platform)").split() == [
      "minipod", "cpu"]


def test_no_warning_at_start():
  returncode, _, err = scenario.finish(scenario.start("print(jnp.add(1, 1))"))
  assert (returncode, err) == (0, "")
