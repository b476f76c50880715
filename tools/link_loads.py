#!/usr/bin/env python3
"""Says how busy each link of a pod was, from the timeline of a run.

    MINIPOD_TIME=model MINIPOD_TRACE=t.json MINIPOD_TOPOLOGY=v5e:4x4 python train.py
    tools/link_loads.py t.json > loads.txt
    build/minipod-topo --svg --loads loads.txt topology=v5e:4x4 > pod.svg

A line for each link that carried anything: its name, and which share of what it could have carried from the first
launch to the end.  `--program jit_step` counts only the launches of a program, and the time from the first of them.
"""

import argparse
import json
import pathlib


def read_events(path):
  """The events of a timeline, also of one that goes on or was cut off: an array without its end."""
  text = pathlib.Path(path).read_text().rstrip()
  return json.loads(text if text.endswith("]") else text.rstrip(",") + "]")


def loads_of(events, program=None):
  """The mean load of each link, by name."""
  names = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
  process = {e["args"]["name"]: e["pid"] for e in events if e["name"] == "process_name"}
  slices = [e for e in events if e["ph"] == "X"]
  launches = [e for e in slices if e.get("cat") == "launch" and program in (None, e["name"])]
  if not launches:
    raise SystemExit(f"no launches{f' of {program}' if program else ''} in this timeline")
  begin = min(e["ts"] for e in launches)
  end = max(e["ts"] + e["dur"] for e in launches)
  busy = {}
  for e in slices:
    if e["pid"] != process["links"] or not begin <= e["ts"] < end:
      continue
    name = names[e["pid"], e["tid"]]
    busy[name] = busy.get(name, 0) + e["args"]["load"] * e["dur"]
  return {name: time / (end - begin) for name, time in busy.items()}


def main():
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("timeline")
  parser.add_argument("--program", help="count only the launches of this program")
  arguments = parser.parse_args()
  for name, load in sorted(loads_of(read_events(arguments.timeline), arguments.program).items()):
    print(f"{name}: {load:.4f}")


if __name__ == "__main__":
  main()
