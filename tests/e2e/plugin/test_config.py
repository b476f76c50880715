"""The options, and the errors of wrong settings."""

import pytest
import scenario

SHOW = "print(len(jax.devices()), jax.devices()[-1].coords, jax.devices()[0].device_kind)"


def message(code=SHOW, **variables):
  """The last line of output of a start that fails."""
  return scenario.run(code, fails=True, **variables).strip().splitlines()[-1]


@pytest.mark.parametrize("count", [1, 3, 16])
def test_number_of_devices(count):
  assert scenario.run("print(len(jax.devices()))", devices=count).split() == [str(count)]


def test_at_least_four_devices_by_default():
  assert int(scenario.run("print(len(jax.devices()))", devices=None)) >= 4


@pytest.mark.parametrize("option", ["{'num_devices': 6}", "{'num_devices': '6'}",
                                    "'num_devices:6'"])
def test_number_of_devices_as_a_client_option(option):
  out = scenario.run(f"jax.config.update('jax_pjrt_client_create_options', {option})\n"
                     "print(len(jax.devices()))")
  assert out.split() == ["6"]


def test_topology_in_one_line():
  out = scenario.run("""
      print(len(jax.devices()), [list(d.coords) for d in jax.devices()][-1])
      print(sorted({d.host_index for d in jax.devices()}))
      """, devices=None, MINIPOD_TOPOLOGY="torus:4x2 hosts:2")
  assert out.splitlines() == ["8 [3, 1]", "[0, 1]"]


def test_topology_from_a_file(tmp_path):
  file = tmp_path / "pod.yaml"
  file.write_text("shape: 2x3\nkind: tiny\nhbm: 32MiB\n")
  out = scenario.run("""
      d = jax.devices()[0]
      print(len(jax.devices()), d.device_kind, d.memory_stats()['bytes_limit'])
      """, devices=None, MINIPOD_TOPOLOGY=file)
  assert out.split() == ["6", "tiny", str(32 << 20)]


def test_wrong_key_in_a_file(tmp_path):
  file = tmp_path / "pod.yaml"
  file.write_text("shape: 2x3\n\nhostss: 2\n")
  text = message(devices=None, MINIPOD_TOPOLOGY=file)
  assert f"{file}:3" in text and "hostss" in text and "hosts" in text.replace("hostss", "")


@pytest.mark.parametrize("variables, words", [
    ({"MINIPOD_TOPOLOGY": "torus:4xfour"}, ["torus:4xfour"]),
    ({"MINIPOD_TOPOLOGY": "no-such-file.yaml"}, ["no-such-file.yaml"]),
    ({"MINIPOD_TOPOLOGY": "torus:2x2", "devices": 5}, ["5", "4"]),
    ({"MINIPOD_DEVICE_MEMORY": "64Mib of it"}, ["MINIPOD_DEVICE_MEMORY", "64Mib of it"]),
    ({"devices": "many"}, ["MINIPOD_DEVICES", "many"]),
    ({"devices": 0}, ["MINIPOD_DEVICES", "0"])])
def test_wrong_settings(variables, words):
  text = message(**{"devices": None, **variables})
  for word in words:
    assert word in text


def test_unknown_client_option_names_the_nearest():
  text = message("jax.config.update('jax_pjrt_client_create_options', {'num_device': 4})\n" + SHOW)
  assert "num_device" in text and "num_devices" in text


def test_unknown_compile_option_is_refused_by_name():
  text = message("""
      jax.jit(lambda x: x + 1).lower(1.).compile(compiler_options={'xla_no_such_option': True})
      """)
  assert "xla_no_such_option" in text


def test_memory_limit():
  out = scenario.run("""
      device = jax.devices()[0]
      kept = jax.device_put(np.ones((5, 1 << 20), np.float32), device)
      limit = device.memory_stats()['bytes_limit']
      try:
        jax.block_until_ready(jax.device_put(np.ones((25, 1 << 20), np.float32), device))
        print('no error')
      except jax.errors.JaxRuntimeError as error:
        text = str(error)
        print('RESOURCE_EXHAUSTED' in text, '[5,1048576]' in text.replace(' ', '')
              or '20.0' in text or '20971520' in text)
        import sys; print(text, file=sys.stderr)
      used = device.memory_stats()['bytes_in_use']
      print(limit == 64 << 20, 20 << 20 <= used < 21 << 20)
      kept.delete(); del kept
      print(device.memory_stats()['bytes_in_use'])
      more = jax.device_put(np.ones((14, 1 << 20), np.float32), device)
      print(float(more[3].sum()) == 1 << 20)
      """, MINIPOD_DEVICE_MEMORY="64MiB")
  assert out.splitlines() == ["True True", "True True", "0", "True"]


def test_memory_limit_inside_a_program():
  out = scenario.run("""
      x = jnp.ones((1 << 20,), jnp.float32)
      f = jax.jit(lambda v: jnp.outer(v, v[:40]))
      try:
        jax.block_until_ready(f(x))
        print('no error')
      except jax.errors.JaxRuntimeError as error:
        print('RESOURCE_EXHAUSTED' in str(error))
      print(float(x.sum()) == 1 << 20)
      """, MINIPOD_DEVICE_MEMORY="64MiB")
  assert out.splitlines() == ["True", "True"]


def test_compile_options_without_effect_are_named_once():
  process = scenario.start("""
      options = {"xla_cpu_enable_fast_math": True, "xla_hlo_profile": False}
      for i in range(3):
        print(jax.jit(lambda x: x + i, compiler_options=options)(1.0))
  """, MINIPOD_LOG_LEVEL="info")
  returncode, out, err = scenario.finish(process)
  assert returncode == 0 and out.split() == ["1.0", "2.0", "3.0"]
  lines = [line for line in err.splitlines() if "compile option" in line]
  assert sorted(lines) == [f"minipod: info: compile option {name} is known but has no effect here"
                           for name in ("xla_cpu_enable_fast_math", "xla_hlo_profile")]
