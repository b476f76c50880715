#!/usr/bin/env python3
"""Compares the model's times of collectives with SimGrid's, for the same messages.

    tools/simgrid/compare.py [--build build] [--markdown] [--filter WORD] [--check PERCENT]

`minipod-network --messages` prints the links of a pod, the messages of an algorithm, the links that each message
crosses, and the modelled time.  SimGrid gets the links and routes as a platform, and plays the messages.  The table
shows both times.

Needs Debian's libsimgrid-dev (apt-get install libsimgrid-dev).
"""

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile
import xml.sax.saxutils as escape

ROOT = pathlib.Path(__file__).resolve().parents[2]
LINKS = "links.latency:1us links.bandwidth:45GB/s"
NETWORK = ("host_link.latency:1us host_link.bandwidth:32GB/s"
           " dcn.latency:10us dcn.bandwidth:12.5GB/s")

# Name, pod, number of devices.
PODS = [
    ("ring 8", f"ring:8 {LINKS}"),
    ("torus 4x4", f"torus:4x4 {LINKS}"),
    ("torus 4x4x4", f"torus:4x4x4 {LINKS}"),
    # Eight hosts of four devices, two per leaf; the links above a leaf have half of its hosts' bandwidth.
    ("fat tree", "switch:4 slices:8 links.latency:500ns links.bandwidth:300GB/s dcn.topology:fat_tree"
                 f" dcn.leaf_hosts:2 dcn.oversubscription:2 {NETWORK}"),
    ("two slices", f"torus:4x4 slices:2 hosts:8 {LINKS} {NETWORK}"),
]
COLLECTIVES = ["all_reduce", "all_gather", "all_to_all", "collective_permute"]
# Divisible by all numbers of devices here, and by twice these numbers.
SIZES = [("4 KiB", 4 << 10), ("256 KiB", 256 << 10), ("16 MiB", 16 << 20), ("256 MiB", 256 << 20)]

# SimGrid's own corrections for TCP are switched off, because both sides get the links' real values: the bandwidth and
# latency of a link count in full (SimGrid's default: 97 % of the bandwidth, 13 times the latency), no window limits a
# connection, and acknowledgements use no bandwidth.
NEUTRAL = ["network/bandwidth-factor:1", "network/latency-factor:1", "network/weight-S:0",
           "network/crosstraffic:0", "network/TCP-gamma:0", "network/loopback-lat:0",
           "surf/precision:1e-12"]
MODELS = {
    # SimGrid's flow model, in which flows share a link in proportion to their reciprocal latencies, as TCP connections
    # do.
    "CM02": ["network/model:CM02"],
    # SimGrid's model of parallel tasks, in which flows share a link equally, as in minipod's model.
    "L07": ["host/model:ptask_L07"],
}


def build_simulator(folder: pathlib.Path) -> pathlib.Path:
  program = folder / "simgrid_messages"
  subprocess.run([os.environ.get("CC", "cc"), "-O2", "-Wall", "-o", program,
                  ROOT / "tools/simgrid/simgrid_messages.c", "-lsimgrid"], check=True)
  return program


def ask_model(build: pathlib.Path, pod: str, collective: str, size: int, algorithm: str):
  """The algorithm, its time, the links and the messages."""
  output = subprocess.run([build / "minipod-network", pod, collective, str(size), algorithm, "--messages"],
                          check=True, capture_output=True, text=True).stdout
  algorithm, time, links, sends = "", 0.0, [], []
  for line in output.splitlines():
    word, *rest = line.split()
    if word == "algorithm":
      algorithm = rest[0]
    elif word == "time":
      time = float(rest[0])
    elif word == "link":
      links.append((rest[1], rest[2]))
    else:
      sends.append((int(rest[0]), int(rest[1]), int(rest[2]), float(rest[3]), tuple(rest[4:])))
  return algorithm, time, links, sends


def write_platform(path: pathlib.Path, links, sends) -> int:
  """Writes the links, and the routes of all pairs that send something; returns the number of devices."""
  devices = 1 + max(max(source, target) for _, source, target, _, _ in sends)
  routes = {(source, target): route for _, source, target, _, route in sends}
  with path.open("w") as file:
    file.write('<?xml version="1.0"?>\n<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">\n'
               '<platform version="4.1"><zone id="pod" routing="Full">\n')
    for device in range(devices):
      file.write(f'<host id="d{device}" speed="1Gf"/>\n')
    for number, (bandwidth, latency) in enumerate(links):
      file.write(f'<link id="l{number}" bandwidth="{escape.escape(bandwidth)}Bps" latency="{latency}s"/>\n')
    for (source, target), route in routes.items():
      parts = "".join(f'<link_ctn id="l{link}"/>' for link in route)
      file.write(f'<route src="d{source}" dst="d{target}" symmetrical="NO">{parts}</route>\n')
    file.write("</zone></platform>\n")
  return devices


def ask_simgrid(program: pathlib.Path, folder: pathlib.Path, links, sends, model: str) -> float:
  platform, messages = folder / "platform.xml", folder / "messages"
  devices = write_platform(platform, links, sends)
  messages.write_text("".join(f"{step} {source} {target} {size:.0f}\n"
                              for step, source, target, size, _ in sends))
  options = [f"--cfg={option}" for option in [*MODELS[model], *NEUTRAL]]
  done = subprocess.run([program, platform, messages, str(devices), "--log=root.thres:error", *options],
                        capture_output=True, text=True, check=False)
  if done.returncode != 0:
    sys.exit(f"simgrid_messages: {done.stderr}")
  return float(done.stdout.split()[-1])


def main() -> int:
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
  parser.add_argument("--algorithm", default="auto", help="instead of what the rule takes")
  parser.add_argument("--filter", default="", help="only pods or collectives with this in their name")
  parser.add_argument("--markdown", action="store_true")
  parser.add_argument("--check", type=float, help="fails when a difference from L07 is larger, in percent")
  args = parser.parse_args()
  bar = "| " if args.markdown else ""
  columns = ["pod", "collective", "size", "algorithm", "messages", "model, us",
             *(f"{model}, us" for model in MODELS), *(f"to {model}" for model in MODELS)]
  row = f"{bar}{{:<12}} {bar}{{:<18}} {bar}{{:>8}} {bar}{{:<24}} {bar}{{:>8}} " + f"{bar}{{:>11}} " * 3 + f"{bar}{{:>8}} " * 2
  print(row.format(*columns) + bar)
  if args.markdown:
    print("|---" * len(columns) + "|")
  worst = {model: 0.0 for model in MODELS}
  with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    program = build_simulator(folder)
    for pod_name, pod in PODS:
      for collective in COLLECTIVES:
        if args.filter not in pod_name and args.filter not in collective:
          continue
        for size_name, size in SIZES:
          algorithm, time, links, sends = ask_model(args.build, pod, collective, size, args.algorithm)
          theirs = {model: ask_simgrid(program, folder, links, sends, model) for model in MODELS}
          differences = {model: 100 * (time / other - 1) for model, other in theirs.items()}
          for model, difference in differences.items():
            worst[model] = max(worst[model], abs(difference))
          print(row.format(pod_name, collective, size_name, algorithm, len(sends), f"{time * 1e6:.2f}",
                           *(f"{other * 1e6:.2f}" for other in theirs.values()),
                           *(f"{difference:+.2f} %" for difference in differences.values())) + bar, flush=True)
  print("largest difference: " + ", ".join(f"{value:.2f} % to {model}" for model, value in worst.items()))
  return 1 if args.check is not None and worst["L07"] > args.check else 0


if __name__ == "__main__":
  sys.exit(main())
