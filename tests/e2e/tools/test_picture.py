"""minipod-topo --svg: an XML parser reads the pictures of pods."""

import os
import pathlib
import subprocess
import xml.etree.ElementTree as ElementTree

import pytest
import scenario

ROOT = pathlib.Path(__file__).parents[3]
TOPO = pathlib.Path(os.environ.get("MINIPOD_BUILD", ROOT / "build")) / "minipod-topo"
SVG = "{http://www.w3.org/2000/svg}"


def draw(topology, *options, code=0):
  result = subprocess.run([TOPO, "--svg", *options, f"topology={topology}"], capture_output=True,
                          text=True, env=scenario.environment(devices=None))
  assert result.returncode == code, result.stderr
  return result


@pytest.mark.parametrize("topology, chips, hosts", [
    ("v5p:4x4x4", 64, 16), ("h100:8 slices:4", 32, 4), ("torus:4x4", 16, 0),
    *((str(ROOT / "configs" / name), chips, hosts) for name, chips, hosts in [
        ("gpu-cluster.yaml", 32, 4), ("hierarchy.yaml", 64, 4), ("two-slices.yaml", 16, 4),
        ("rack.yaml", 32, 4)])])
def test_pictures(topology, chips, hosts):
  picture = ElementTree.fromstring(draw(topology).stdout)
  width, height = int(picture.get("width")), int(picture.get("height"))
  circles = picture.findall(f".//{SVG}circle")
  assert len(circles) == chips
  assert len({(c.get("cx"), c.get("cy")) for c in circles}) == chips  # no shape hides another
  assert len(picture.findall(f".//{SVG}rect[@class='host']")) == hosts
  for circle in circles:
    assert 0 < int(circle.get("cx")) < width and 0 < int(circle.get("cy")) < height
  titles = [path.find(f"{SVG}title").text for path in picture.findall(f".//{SVG}path")]
  assert len(set(titles)) == len(titles) > 0


@pytest.mark.parametrize("topology, rates, labels", [
    ("v5e:4x4 slices:2", "40 GB/s between chips, 15 GB/s between chip and host, 12.5 GB/s between hosts, per direction",
     {"slice 0", "slice 1", *(f"host {i}" for i in range(8))}),
    ("h100:8 slices:4", "373.5 GB/s between chips, 64 GB/s between chip and host, 364 GB/s", {f"slice {i}, host {i}" for i in range(4)}),
    ("torus:4x4", "45 GB/s between chips", {"slice 0"})])
def test_hosts_and_bandwidths_are_labelled(topology, rates, labels):
  picture = ElementTree.fromstring(draw(topology).stdout)
  words = [text.text for text in picture.findall(f".//{SVG}text")]
  assert any((word or "").startswith(rates) for word in words), words
  assert labels <= set(words), words
  assert int(picture.get("width")) <= 1228


def test_loads(tmp_path):
  loads = tmp_path / "loads.txt"
  loads.write_text("slice 0 (0,0) +x: 0.9\nslice 0 (1,1) -y: 20 %\n")
  picture = ElementTree.fromstring(draw("torus:4x4", "--loads", str(loads)).stdout)
  busy = {path.find(f"{SVG}title").text: path.get("class")
          for path in picture.findall(f".//{SVG}path") if path.get("class") != "link l0"}
  assert busy == {"slice 0 (0,0) +x: 45 GB/s, load 90 %": "link l7",
                  "slice 0 (1,1) -y: 45 GB/s, load 20 %": "link l2"}
  loads.write_text("\nslice 0 (9,9) +x: 0.9\n")
  assert f"{loads}:2: no link 'slice 0 (9,9) +x'" in draw("torus:4x4", "--loads", str(loads), code=1).stderr
