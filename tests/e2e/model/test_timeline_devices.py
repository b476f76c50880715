"""Timelines of large pods show few devices by default; the option MINIPOD_TRACE_DEVICES selects others."""

import collections
import json
import pathlib
import sys
import textwrap

import pytest
import scenario

sys.path.insert(0, str(pathlib.Path(__file__).parents[3] / "tools"))

PROGRAM = """
    import minipod
    mesh = jax.make_mesh((16, 16), ("data", "model"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
    on = lambda *axes: NamedSharding(mesh, P(*axes))
    w, x = (jnp.ones(shape, jnp.bfloat16, device=on(*axes))
            for shape, axes in (((4096, 8192), (None, "model")), ((4096, 4096), ("data", None))))
    step = jax.jit(lambda w, x: (jnp.sin(x @ w) @ w.T).sum(), out_shardings=on())
    for _ in range(3):
      step(w, x).block_until_ready()
    """


def trace(path, topology="v5e:16x16", fails=False, **variables):
  out = scenario.run(textwrap.dedent(PROGRAM), devices=None, fails=fails, MINIPOD_TOPOLOGY=topology, MINIPOD_TIME="model",
                     MINIPOD_VALUES="shapes", MINIPOD_TRACE=path, **variables)
  return out if fails else json.loads(path.read_text())


def rows_of(events):
  """The launches of each device, and the bytes over each link, by name."""
  names = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
  process = {e["args"]["name"].partition(":")[0]: e["pid"] for e in events if e["name"] == "process_name"}
  launches, links = collections.Counter(), collections.Counter()
  for e in events:
    if e["ph"] == "X" and e["cat"] == "launch" and e["name"] == "jit__lambda":
      launches[names[e["pid"], e["tid"]]] += 1
    elif e["ph"] == "X" and e["pid"] == process["links"]:
      links[names[e["pid"], e["tid"]]] += e["args"]["bytes"]
  return launches, links


def test_large_pods_show_few_devices_and_all_links(tmp_path):
  few, everything = (trace(tmp_path / f"{which}.json", MINIPOD_TRACE_DEVICES=which) for which in ("auto", "all"))
  launches, links = rows_of(few)
  assert launches == {f"device {i}": 3 for i in range(8)}
  (pod,) = [e["args"]["name"] for e in few if e["name"] == "process_name" and e["args"]["name"].startswith("v5e")]
  assert pod == "v5e:16x16: devices 0-7 of 256"
  launches, all_links = rows_of(everything)
  assert launches == {f"device {i}": 3 for i in range(256)}
  # The traffic of the other links is summed for each launch.
  assert links.keys() == all_links.keys()
  assert all(links[name] == pytest.approx(all_links[name], rel=1e-9) for name in links)
  assert len(few) < len(everything) / 2


def test_devices_that_are_chosen(tmp_path):
  launches, _ = rows_of(trace(tmp_path / "t.json", MINIPOD_TRACE_DEVICES="3,250-251"))
  assert launches == {"device 3": 3, "device 250": 3, "device 251": 3}


def test_other_texts_are_refused(tmp_path):
  for text, why in (("3,", "expected auto, all or ids"), ("8-3", "expected auto, all"), ("few", "expected auto"),
                    ("4-256", "there is no device 256, the pod has 256")):
    assert why in trace(tmp_path / "t.json", fails=True, MINIPOD_TRACE_DEVICES=text), text
