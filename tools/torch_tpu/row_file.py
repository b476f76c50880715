"""The file of rows that databases.py and suites.py write, and their verbs: `run` writes it, `report` reads it."""

import argparse
import json
import pathlib


def read(paths, name):
  """The rows by name; of several rows with one name the last.  `name` makes a row's name."""
  rows = (json.loads(line) for path in paths if path.exists() for line in path.read_text().splitlines())
  return {name(row): row for row in rows}


def find_done(path, name, result, again):
  """The names in the file, without those of rows whose result (a column) is in `again`, separated by commas."""
  return {key for key, row in read([path], name).items() if row[result] not in again.split(",")}


def write(file, row):
  file.write(json.dumps(row) + "\n")
  file.flush()


def make_parser(about):
  """The parser, and those of the verbs, to which the caller adds arguments of its own."""
  parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
  verbs = parser.add_subparsers(dest="verb", required=True)
  run, report = verbs.add_parser("run"), verbs.add_parser("report")
  run.add_argument("out", type=pathlib.Path)
  run.add_argument("--again", default="", help="run those with these results again, separated by commas")
  return parser, run, report


def call_verb(parser, run, report):
  """Reads the command line, and calls one of these functions with it."""
  args = parser.parse_args()
  (run if args.verb == "run" else report)(args)
