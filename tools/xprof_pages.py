#!/usr/bin/env python3
"""XProf's pages of a profile, as pictures from a browser without a window.

    tools/xprof_pages.py                          # profiles a training step on a described v5e:2x2 first
    tools/xprof_pages.py --profile LOGDIR --out FOLDER

Wants the package xprof (tests/requirements.txt) and Chromium (Debian: chromium), and no network.  So the charts that XProf
has drawn by a script of gstatic.com stay empty, and what is text, table or canvas is there.
"""

import argparse
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

PAGES = ["overview_page", "trace_viewer@", "op_profile", "hlo_stats", "framework_op_stats", "roofline_model", "memory_viewer"]

EXAMPLE = """
import sys
import jax, jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

mesh = jax.make_mesh((2, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
def put(shape, *axes):
  return jax.device_put(jnp.ones(shape, jnp.bfloat16), NamedSharding(mesh, P(*axes)))

@jax.jit
def train_step(w, x):
  def loss(w):
    return (jax.nn.gelu(x @ w[0]) @ w[1]).astype(jnp.float32).var()
  return jax.tree.map(lambda a, g: a - 1e-3 * g, w, jax.grad(loss)(w))

w, x = [put((2048, 8192), None, "model"), put((8192, 2048), "model")], put((4096, 2048), "data")
w = jax.block_until_ready(train_step(w, x))
with jax.profiler.trace(sys.argv[1]):
  for step in range(5):
    with jax.profiler.StepTraceAnnotation("train", step_num=step):
      w = jax.block_until_ready(train_step(w, x))
"""


def profile_example(folder):
  pod = {"JAX_PLATFORMS": "minipod", "MINIPOD_TOPOLOGY": "v5e:2x2", "MINIPOD_TIME": "model", "MINIPOD_VALUES": "shapes"}
  subprocess.run(["env", *(f"{name}={value}" for name, value in pod.items()), sys.executable, "-c", EXAMPLE, folder], check=True)


def free_port():
  with socket.socket() as one:
    one.bind(("127.0.0.1", 0))
    return one.getsockname()[1]


def wait_for(address, server, log):
  for _ in range(240):
    if server.poll() is not None:
      sys.exit("xprof has ended: " + pathlib.Path(log).read_text(errors="replace")[-2000:])
    try:
      urllib.request.urlopen(address, timeout=5).close()
      return
    except (urllib.error.URLError, OSError):
      time.sleep(0.5)
  sys.exit("xprof does not answer")


def main():
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("--profile", help="what jax.profiler.trace has written; without it an example's")
  parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("xprof_pages"))
  arguments = parser.parse_args()
  browser = shutil.which("chromium") or shutil.which("google-chrome")
  if browser is None:
    sys.exit("there is no Chromium: apt install chromium")
  arguments.out.mkdir(parents=True, exist_ok=True)
  with tempfile.TemporaryDirectory() as folder:
    logs = pathlib.Path(arguments.profile or folder)
    if arguments.profile is None:
      profile_example(folder)
    runs = sorted(logs.glob("plugins/profile/*/*.xplane.pb"))
    if not runs:
      sys.exit(f"{logs}: there is no profile in it")
    run, host = runs[-1].parent.name, runs[-1].name.removesuffix(".xplane.pb")
    port = free_port()
    log = open(f"{folder}/log", "wb")
    server = subprocess.Popen([sys.executable, "-c", "from xprof.server import main; main()", "--logdir", str(logs), "--port",
                               str(port), "--grpc_port", str(free_port())], stdout=log, stderr=log)
    try:
      wait_for(f"http://localhost:{port}/", server, log.name)
      for page in PAGES:
        picture = arguments.out / f"{page.strip('@')}.png"
        subprocess.run([browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=1500,1100",
                        "--virtual-time-budget=20000",
                        "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE localhost",
                        f"--user-data-dir={folder}/browser", f"--screenshot={picture}",
                        f"http://localhost:{port}/data/plugin/profile/{page}?run={run}&tag={page}&host={host}"],
                       check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=120)
        print(f"{picture}  {picture.stat().st_size} bytes")
    finally:
      server.terminate()
      server.wait()
      log.close()


if __name__ == "__main__":
  main()
