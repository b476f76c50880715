"""Verbs that read timelines: a picture of a step, the loads of links."""

import gzip
import json
import subprocess
import sys
import xml.etree.ElementTree

import pytest
import scenario

SVG = "{http://www.w3.org/2000/svg}"


def command(*arguments, code=0):
  done = subprocess.run([sys.executable, "-m", "minipod", *map(str, arguments)], capture_output=True, text=True, timeout=300,
                        env=scenario.environment(devices=None))
  assert done.returncode == code, done.stdout[:1000] + done.stderr
  return done.stderr if code else done.stdout


def test_a_step(tmp_path):
  scenario.run("""
      mesh = jax.make_mesh((4,), ("a",))
      on = NamedSharding(mesh, P("a"))
      w, x = (jax.jit(lambda: jnp.ones((1024, 1024), jnp.bfloat16), out_shardings=on)() for _ in range(2))
      @jax.jit
      def train_step(w, x):
        value, g = jax.value_and_grad(lambda w: (jax.nn.gelu(x @ w).astype(jnp.float32) ** 2).mean())(w)
        return w - g.astype(jnp.bfloat16), value
      for _ in range(2):
        w, value = train_step(w, x)
      value.block_until_ready()
      """, devices=None, MINIPOD_TIME="model", MINIPOD_TOPOLOGY="v5e:2x2", MINIPOD_TRACE=tmp_path / "t.json.gz")
  picture = xml.etree.ElementTree.fromstring(
      command("step", "--program", "jit_train_step", "--pod", "v5e:2x2", tmp_path / "t.json.gz"))
  circles = [c.find(f"{SVG}title").text for c in picture.findall(f"{SVG}circle")]
  assert sum("dot_general" in title for title in circles) >= 2
  bars = [(r.find(f"{SVG}title").text, float(r.get("x")), float(r.get("width")))
          for r in picture.findall(f"{SVG}rect") if r.find(f"{SVG}title") is not None]
  assert any("all_gather" in title or "all_reduce" in title for title, *_ in bars)
  assert all(70 <= x and x + width <= 971 for _, x, width in bars)
  words = [text.text for text in picture.findall(f"{SVG}text")]
  assert {"work", "matmul"} <= set(words) and any("197 TFLOP/s, 819 GB/s" in (word or "") for word in words)
  # The loads of links, from the whole timeline and from a truncated one; `topo` draws them on the pod.
  loads = dict(line.rsplit(": ", 1) for line in command("loads", tmp_path / "t.json.gz").splitlines())
  assert loads and all(0 < float(load) <= 1 for load in loads.values()) and all("slice 0" in name for name in loads)
  (tmp_path / "loads.txt").write_text(command("loads", tmp_path / "t.json.gz"))
  assert (command("topo", "--svg", "--loads", tmp_path / "t.json.gz", "v5e:2x2") ==
          command("topo", "--svg", "--loads", tmp_path / "loads.txt", "v5e:2x2"))
  whole = (tmp_path / "t.json.gz").read_bytes()
  (tmp_path / "cut.json.gz").write_bytes(whole[:len(whole) * 9 // 10])
  assert command("loads", tmp_path / "cut.json.gz").startswith("slice 0 ")


@pytest.mark.parametrize("verb", ["step", "loads"])
def test_timelines_that_are_none(tmp_path, verb):
  (tmp_path / "t.json").write_text("[\n")
  assert "no launches of jit_f" in command(verb, "--program", "jit_f", tmp_path / "t.json", code=1)
  texts = [b"", b"{}", b"nothing", b"[3]", b'[{"ph": "X"}]', b'[{"ph": "X", "name": "thread_name"}]', b"[" * 100000,
           b'[{"ph": "X", "name": "f", "cat": "launch", "dur": 1}]', gzip.compress(b"[{]"), b"\x1f\x8bnothing"]
  if verb == "step":
    texts.append(json.dumps([{"ph": "M", "name": "thread_name", "pid": 1, "tid": 1, "args": {"name": "device 0"}},
                             {"ph": "X", "name": "f", "cat": "launch", "dur": 0, "ts": 0, "pid": 1, "tid": 1}]).encode())
  for text in texts:
    (tmp_path / "t.json").write_bytes(text)
    said = command(verb, tmp_path / "t.json", code=1)
    assert said.startswith(f"minipod {verb}: {tmp_path}/t.json: ") and said.count("\n") == 1, (text, said)
  assert "is a device" in command(verb, "/dev/zero", code=1)
