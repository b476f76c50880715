"""What minipod prints on standard error: by default only what is wrong with the settings."""

import re
import shutil

import minipod
import scenario

USE = "print(float(jax.jit(lambda x: (x * 2 + jnp.abs(x)).sum())(jnp.ones(1 << 16))))"


def said(code=USE, **variables):
  """The lines of a run, which must succeed."""
  returncode, out, err = scenario.finish(scenario.start(code, **variables))
  assert returncode == 0, err
  return [line for line in err.splitlines() if line.startswith("minipod:")]


def test_correct_scripts_print_no_line(tmp_path):
  assert said(MINIPOD_TEST_FULL=1, MINIPOD_RANDOM_SEED=1, MINIPOD_COMMUNICATION_CASES=6,
              MINIPOD_DUMP=tmp_path) == []


def test_a_misspelt_variable_is_named():
  assert said(MINIPOD_TOPOLGY="v5e:4x4") == [
      "minipod: warning: unknown environment variable MINIPOD_TOPOLGY, did you mean MINIPOD_TOPOLOGY?"]
  assert said(MINIPOD_TOPOLGY="v5e:4x4", MINIPOD_LOG_LEVEL="off") == []


def test_options_that_come_too_late_are_named():
  returncode, out, err = scenario.finish(scenario.start("""
      print(len(jax.devices()))
      jax.config.update("jax_pjrt_client_create_options", {"num_devices": 8})
      import minipod
      minipod.use(num_devices=3)
      print(len(jax.devices()))
      """))
  assert (returncode, out) == (0, "4\n3\n")
  assert len(err.splitlines()) == 1 and "the pod is already in use" in err


def test_a_library_that_cannot_be_loaded_is_named(tmp_path):
  (tmp_path / "broken.so").write_text("no library")
  for name, why in (("none.so", "there is no such file"), ("broken.so", "broken.so")):
    error = scenario.run("jax.devices()", fails=True, MINIPOD_LIBRARY=tmp_path / name)
    last = error.splitlines()[-1]
    assert "minipod's library cannot be loaded: " in last and why in last and "minipod doctor" in last


def beside(folder):
  """A copy of the library, with the other files of its folder."""
  return shutil.copy(minipod.library_path(), folder)


def test_a_module_that_cannot_be_loaded_is_named(tmp_path):
  (tmp_path / "minipod_native.so").write_text("no library")
  lines = said(MINIPOD_LIBRARY=beside(tmp_path), MINIPOD_NATIVE=2)
  assert len(lines) == 1 and lines[0].startswith(
      "minipod: warning: cannot make machine code, so loops are slower: "), lines
  assert "minipod_native.so: " in lines[0]


def test_a_module_that_is_of_another_build_is_named(tmp_path):
  shutil.copy(minipod.library_path(), tmp_path / "minipod_native.so")
  lines = said(MINIPOD_LIBRARY=beside(tmp_path), MINIPOD_NATIVE=2)
  assert lines == ["minipod: warning: cannot make machine code, so loops are slower:"
                   f" {tmp_path}/minipod_native.so is of another build"]


def test_no_module_is_no_error(tmp_path):
  library = beside(tmp_path)
  assert said(MINIPOD_LIBRARY=library, MINIPOD_NATIVE=2) == []
  assert f"minipod: info: cannot make machine code: there is no {tmp_path}/minipod_native.so" in said(
      MINIPOD_LIBRARY=library, MINIPOD_NATIVE=2, MINIPOD_LOG_LEVEL="info")


def test_the_first_line_has_what_the_description_says():
  lines = said("print(len(jax.devices()))", MINIPOD_LOG_LEVEL="info", MINIPOD_TOPOLOGY="torus:4 time:model values:shapes")
  assert len(lines) == 1 and lines[0].endswith(", time model, values shapes"), lines


def test_debug_prints_what_a_maintainer_needs_first():
  lines = said("""
      def double(x): return x * 2
      x = jax.device_put(np.ones(4, np.float32), jax.devices()[1])
      print(np.asarray(jax.jit(double)(x)), np.asarray(jax.pmap(double)(np.ones((4, 2)))))
      """, MINIPOD_LOG_LEVEL="debug", MINIPOD_TOPOLOGY="torus:4")
  text = "\n".join(lines)
  for wanted in [r"debug: client made: 4 of 4 devices, process 0 of 1",
                 r"debug:   pod +torus:4: 4 devices",
                 r"debug: put on device 1 \(device\): tensor<4xf32>",
                 r"debug: compiled jit_double in \d+\.\d{3} ms: 1 replicas of 1 partitions, \d+ commands",
                 r"debug: launch \d+: jit_double on device 1$",
                 r"debug: launch \d+: jit__fun on devices 0, 1, 2, 3$"]:
    assert re.search(wanted, text, re.MULTILINE), f"{wanted}\n{text}"


FAILED = "import numpy as np\nxs = [jnp.ones((1024, 1024, 2)) * i for i in range(20)]\n"


def test_an_unread_error_is_printed_at_exit():
  lines = said(FAILED, MINIPOD_DEVICE_MEMORY="64MiB")
  assert lines[0] == "minipod: warning: errors that the script never saw:"
  assert "RESOURCE_EXHAUSTED: out of memory: 8388608 bytes for f32[1024,1024,2], result 0 of jit_multiply" in lines[1]
  assert len([line for line in lines if "RESOURCE_EXHAUSTED" in line]) == 1, lines


def test_the_first_failure_is_the_one_that_is_raised():
  """A step fails because its optimizer has no memory.  The error says so, although its results have no memory either.
  """
  lines = said("""
      params = [jnp.ones((1024, 1024)) * i for i in range(6)]
      state = [jnp.zeros_like(x) for x in params]
      step = jax.jit(lambda p, s: ([x + y for x, y in zip(p, s)], [x * y for x, y in zip(p, s)]))
      for _ in range(3):
        params, state = step(params, state)
      try:
        params[0].block_until_ready()
      except jax.errors.JaxRuntimeError as error:
        assert "result 0 of jit_broadcast_in_dim do not fit" in str(error) and "jit__lambda" not in str(error), error
      else:
        raise SystemExit("no error")
      """, MINIPOD_DEVICE_MEMORY="32MiB")
  assert lines == [], lines


def test_of_unread_errors_the_first_is_whole():
  lines = said("""
      kept = [jnp.ones((1024, 1024)) * i for i in range(6)]
      for i in range(1, 4):
        jnp.full((2048, 1024 + i), 3.0).sum()
      """, MINIPOD_DEVICE_MEMORY="32MiB")
  errors = [i for i, line in enumerate(lines) if "RESOURCE_EXHAUSTED" in line]
  assert len(errors) >= 2 and errors[1:] == list(range(errors[1], errors[1] + len(errors) - 1)), lines
  assert errors[1] > 3 and errors[-1] == len(lines) - 1, lines


def test_an_error_that_was_read_is_not_printed_again():
  for read in ["jax.block_until_ready(xs)", "np.asarray(xs[-1])", "print(xs[-1])",
               "jax.block_until_ready(jax.jit(lambda x: x + 1)(xs[-1]))"]:
    assert said(f"{FAILED}try:\n  {read}\n  raise SystemExit('no error')\nexcept jax.errors.JaxRuntimeError:\n  pass",
                MINIPOD_DEVICE_MEMORY="64MiB") == [], read


def test_cpu_devices_in_xla_flags_do_not_count():
  flags = "--xla_cpu_enable_fast_math=false --xla_force_host_platform_device_count=8"
  lines = said("print(len(jax.devices()))", XLA_FLAGS=flags, MINIPOD_DEVICES="")
  assert len(lines) == 1 and lines[0].startswith(
      "minipod: warning: XLA_FLAGS sets 8 devices, but for JAX's CPU backend: minipod has "), lines
  assert lines[0].endswith(" and 8 with MINIPOD_DEVICES=8")
  assert said("print(len(jax.devices()))", XLA_FLAGS=flags, MINIPOD_DEVICES=8) == []
  assert said("print(len(jax.devices()))", XLA_FLAGS=flags, MINIPOD_TOPOLOGY="v5e:2x2") == []
