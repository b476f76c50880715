"""Messages in the format of protocol buffers, with fields that are numbers or bytes."""

import struct


def varint(value):
  data = b""
  while value >= 0x80:
    data, value = data + bytes([value & 0x7F | 0x80]), value >> 7
  return data + bytes([value])


def field(key, value):
  """A field of a message: a number, or bytes."""
  if isinstance(value, int):
    return varint(key << 3) + varint(value)
  return varint(key << 3 | 2) + varint(len(value)) + value


def read_varint(data, at):
  """The number at a position, and the position after it."""
  value = shift = 0
  while True:
    byte = data[at]
    value |= (byte & 0x7F) << shift
    at, shift = at + 1, shift + 7
    if byte < 0x80:
      return value, at


def varints_of(data):
  at = 0
  while at < len(data):
    value, at = read_varint(data, at)
    yield value


def fields_of(message):
  """(number, value) of each field."""
  at = 0
  while at < len(message):
    key, at = read_varint(message, at)
    assert key & 7 in (0, 1, 2)
    if key & 7 == 1:
      (value,), at = struct.unpack("<d", message[at:at + 8]), at + 8
    else:
      value, at = read_varint(message, at)
    if key & 7 == 2:
      value, at = message[at:at + value], at + value
    yield key >> 3, value
