"""tools/size/measure.py measures, and draws its measurements."""

import json
import pathlib
import subprocess
import sys

MEASURE = pathlib.Path(__file__).parents[3] / "tools" / "size" / "measure.py"
sys.path.insert(0, str(MEASURE.parent))

import measure


def test_pods():
  assert measure.pod_of(8, False) == ("v5e:2x4", 1)
  assert measure.pod_of(2048, False) == ("v5e:16x16 slices:8", 8)
  assert measure.pod_of(65536, True) == ("torus:256x256 hbm:16GiB", 256)


def test_a_pod_is_measured_and_drawn(tmp_path):
  done = subprocess.run([sys.executable, MEASURE, "--devices", "8", "--json", tmp_path / "size.json", "--plot",
                         tmp_path / "size.png", "--processor"], capture_output=True, text=True, timeout=120)
  assert done.returncode == 0, done.stderr
  row, = json.loads((tmp_path / "size.json").read_text())
  assert row["devices"] == 8 and row["step"] > 0 and 100 < row["MiB"] < 1000
  assert done.stdout.splitlines()[-1].startswith("| `v5e:2x4` | 8 |")
  assert (tmp_path / "size.png").read_bytes().startswith(b"\x89PNG")
