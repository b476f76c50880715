"""The program that tools/roots runs in each root: it checks that the wheel works where only Python is installed.

It prints a line for each check, and exits with 1 if one fails.
"""

import os
import pathlib
import platform
import shutil
import subprocess
import sys

PMAP = """
import jax, numpy as np
f = jax.pmap(lambda x: x + jax.lax.psum(x, "i"), axis_name="i")
print(jax.device_count(), f(np.array([device.id for device in jax.local_devices()])))
"""
SHARDED = """
import jax, numpy as np
mesh = jax.sharding.Mesh(jax.devices(), ("x",))
a = jax.device_put(np.arange(64.0).reshape(16, 4), jax.NamedSharding(mesh, jax.P("x")))
print(jax.devices()[0].device_kind, float(jax.jit(lambda a: (a * a).sum())(a)))
"""
TIMED = SHARDED + """
import minipod
print(minipod.virtual_time() > 0)
"""
NATIVE = """
import jax, jax.numpy as jnp
x = jnp.arange(1024.0)
print(float(jax.jit(lambda x: (x * 2 + 1).sum())(x)))
"""
BIN = pathlib.Path(sys.executable).parent


def run(words: list[str], **variables) -> str:
  env = {**os.environ, "JAX_PLATFORMS": "minipod", "TF_CPP_MIN_LOG_LEVEL": "2", **variables}
  done = subprocess.run(words, env=env, text=True, capture_output=True, timeout=600, check=False)
  return done.stdout + (done.stderr if done.returncode else "")


def main() -> int:
  script = pathlib.Path("/try/script.py")
  libc = " ".join(platform.libc_ver())
  found = [name for name in ("gcc", "cc", "clang", "mpirun", "lstopo") if shutil.which(name)]
  name = platform.freedesktop_os_release()["PRETTY_NAME"]
  print(f"  {name}, {libc}, Python {platform.python_version()}, compilers and tools: {found or 'none'}")
  failed = 0

  def show(what: str, said: str, told: str) -> None:
    nonlocal failed
    is_right = told in said
    failed += not is_right
    print(f"  {'ok  ' if is_right else 'FAIL'} {what}: {said.strip() if not is_right else told}")

  def python(what: str, code: str, told: str, **variables) -> None:
    script.write_text(code)
    show(what, run([sys.executable, str(script)], **variables), told)

  python("pmap on 4 devices", PMAP, "4 [6 7 8 9]", MINIPOD_DEVICES="4")
  python("jit with shardings on 8", SHARDED, "85344.0", MINIPOD_DEVICES="8")
  python("a described pod, timed", TIMED, "TPU v5 lite", MINIPOD_TOPOLOGY="v5e:2x4", MINIPOD_TIME="model")
  python("a described pod by its name", SHARDED, "TPU v5", MINIPOD_TOPOLOGY="two-slices")
  python("machine code at once", NATIVE, "1048576.0", MINIPOD_NATIVE="2")
  script.write_text(PMAP)
  said = run([str(BIN / "minipod"), "run", "-n", "2", "--devices", "2", str(script)])
  show("two processes", said, "4 [6 7]")
  show("two processes, the second", said, "[8 9]")
  show("minipod topo", run([str(BIN / "minipod"), "topo", "v5e:4x4"]), "16 devices")
  show("minipod doctor", run([str(BIN / "minipod"), "doctor"]), "good  options")
  return 1 if failed else 0


if __name__ == "__main__":
  sys.exit(main())
