"""tools/step_picture.py: a picture of a step from its timeline."""

import pathlib
import subprocess
import sys
import xml.etree.ElementTree

import scenario

ROOT = pathlib.Path(__file__).parents[3]
SVG = "{http://www.w3.org/2000/svg}"


def draw(*arguments):
  return subprocess.run([sys.executable, ROOT / "tools/step_picture.py", *map(str, arguments)], capture_output=True,
                        text=True)


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
      """, devices=None, MINIPOD_TIME="model", MINIPOD_TOPOLOGY="v5e:2x2", MINIPOD_TRACE=tmp_path / "t.json")
  done = draw("--program", "jit_train_step", "--flops", 197e12, "--bandwidth", 819e9, tmp_path / "t.json")
  assert done.returncode == 0, done.stderr
  picture = xml.etree.ElementTree.fromstring(done.stdout)
  circles = [c.find(f"{SVG}title").text for c in picture.findall(f"{SVG}circle")]
  assert sum("dot_general" in title for title in circles) >= 2
  bars = [(r.find(f"{SVG}title").text, float(r.get("x")), float(r.get("width")))
          for r in picture.findall(f"{SVG}rect") if r.find(f"{SVG}title") is not None]
  assert any("all_gather" in title or "all_reduce" in title for title, *_ in bars)
  assert all(70 <= x and x + width <= 981 for _, x, width in bars)
  words = [text.text for text in picture.findall(f"{SVG}text")]
  assert "work" in words and any("197 TFLOP/s, 819 GB/s" in (word or "") for word in words)


def test_a_timeline_without_such_a_program(tmp_path):
  (tmp_path / "t.json").write_text("[\n")
  done = draw("--program", "jit_f", tmp_path / "t.json")
  assert done.returncode == 1 and "no launches of jit_f" in done.stderr
