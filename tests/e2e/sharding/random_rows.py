"""The ops of random programs, by subject in random_rows_*.py.

For each op, a function adds it to a program with random shapes and attributes.
"""

import functools

OPS = {}


def row(*names):
  def add(f):
    for name in names:
      OPS[name] = functools.partial(f, name=name)
    return f
  return add
