"""`minipod opt` prints the Mosaic modules of a program's kernels, and files that are such modules."""

import base64
import json
import pathlib
import subprocess
import sys

KERNELS = pathlib.Path(__file__).parents[2] / "fixtures" / "mosaic"


def opt(*args, stdin=None):
  return subprocess.run([sys.executable, "-m", "minipod", "opt", *args], input=stdin, capture_output=True, check=False)


def program_of(config):
  quoted = config.replace("\\", "\\\\").replace('"', '\\"')
  return f"""func.func @main(%a: tensor<16x128xf32>) -> tensor<16x128xf32> {{
  %0 = stablehlo.custom_call @tpu_custom_call(%a, %a) {{backend_config = "{quoted}"}} :
    (tensor<16x128xf32>, tensor<16x128xf32>) -> tensor<16x128xf32> loc("train.py":12:7)
  return %0 : tensor<16x128xf32>
}}
""".encode()


def test_modules():
  """The module of a call, its bytecode and MLIR's text of it print alike, and so does what is printed."""
  config = (KERNELS / "add.json").read_text().strip()
  printed = opt(str(KERNELS / "add.txt"))
  assert printed.returncode == 0 and b'"stable_mosaic.arith.addf"' in printed.stdout, printed.stderr
  body = base64.b64decode(json.loads(config)["custom_call_config"]["body"])
  assert opt("-", stdin=body).stdout == printed.stdout
  assert opt("-", stdin=printed.stdout).stdout == printed.stdout
  of_program = opt("--mosaic", "-", stdin=program_of(config))
  assert of_program.stdout == b"// train.py:12:7\n" + printed.stdout, of_program.stderr
  whole = opt("-", stdin=program_of(config))
  assert b"stablehlo.custom_call @tpu_custom_call" in whole.stdout, whole.stderr


def test_errors_name_the_call():
  done = opt("--mosaic", "-", stdin=program_of('{"custom_call_config": {"body": "x"}}'))
  assert done.returncode == 1
  assert b"backend_config of tpu_custom_call: body: it is not base64" in done.stderr
  assert b"train.py:12:7" in done.stderr
