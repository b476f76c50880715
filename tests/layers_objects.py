"""The plan of the C tree as the linker sees it: what tests/layers.py asks of a build.

Includes say what a file may know; objects say what it calls.  A prototype that is written by hand, or a header that
declares what another room defines, gets round the first and not the second.
"""

import collections
import pathlib
import re
import subprocess

# Circles of files that call each other, because they are one module that is too long for one file: the room, its
# files, the reason.  A circle that grows, shrinks or is gone has to be changed here.
CIRCLES: list[tuple[str, str, str]] = [
    ("collectives/transport", "shm shm_return", "who looks for packets opens to those who knock, and takes them in"),
    ("collectives/transport", "world world_exchange world_return world_send", "waiting for a message goes on with"
     " sending, and with taking in who has come back"),
    ("collectives/transport/hosts", "ucx ucx_in ucx_return", "what comes in may be a knock, and who has come back is"
     " connected anew"),
    ("sim/chip/steps", "chip_blocks chip_flow", "blocks have loops and branches, which have blocks"),
    ("sim/foreign", "foreign_api foreign_registry foreign_state", "functions are asked about by the interface that they"
     " register at"),
    ("sim/model/network/algorithms", "algorithm_rule algorithms", "an algorithm for a hierarchy is made of algorithms"),
    ("sim/readers/text", "text_attrs text_locs text_structs", "attributes and locations hold attributes"),
    ("sim/mosaic/read", "mosaic_text_attrs mosaic_text_types", "types have attributes (layouts), and attributes types"),
]
MAX_IN_CIRCLES = 21  # files, over all circles: those listed above
# Libraries of their own, which are built only where their MPI or LLVM is.
MODULES = ("collectives/transport/mpi", "sim/native/module")
# Functions that no other file of the tree calls. Each needs a reason; others are static, or go.
ALONE = {
  "called by tests, which look inside or make a part of the whole": (
    "mp_alloc_fail_at mp_alloc_live mp_announcement_write mp_buffer_definition mp_call_target"
    " mp_chip_calibrate mp_chip_figures_none mp_chip_figures_read mp_client_create_in mp_compile_module"
    " mp_complete_basis_d mp_copy_past_caches mp_executable_local mp_executable_program mp_fault_refusals"
    " mp_fault_requests mp_flows_link_rate mp_flows_rate mp_mmap_live mp_mosaic_make_kernel_of mp_native_set_module"
    " mp_parcels_forget mp_pjrt_client_create_in mp_proto_put_float mp_router_forget mp_segment_idle_bytes"
    " mp_session_deliver mp_tpu_split_address mp_watch_tick_ms mp_world_close mp_worlds_create_local"),
  "the complex twin of one that tests call": "mp_complete_basis_z",
  "called by assertions and macros of debug builds": "mp_assert_fail mp_status_locate mp_remote_stripe_misses",
}
OBJECT = re.compile(r"\.dir/((?:sim|topology|collectives|pjrt)/.*\.c)\.o$")
NOISE = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|^[ \t]*#(?:\\\n|[^\n])*', re.DOTALL | re.MULTILINE)
EXTERN = re.compile(r"^extern\b.*?\b(\w+)\s*(?:\[[^]]*\]\s*)*$", re.DOTALL)
NAME = re.compile(r"\b(\w+)\s*$")

Calls = dict[str, dict[str, set[str]]]  # by the caller and the called file (or room): the names


def room_of(file: str) -> str:
  return file.rpartition("/")[0]


class Objects:
  """Which object defines and which uses each name, for objects whose source still exists."""

  def __init__(self, root: pathlib.Path, build: pathlib.Path):
    self.sources: set[str] = set()
    self.homes: dict[str, set[str]] = collections.defaultdict(set)
    objects = {}
    for path in sorted(build.rglob("*.c.o")):
      match = OBJECT.search(path.as_posix())
      if match and (root / match.group(1)).exists():
        objects[str(path)] = match.group(1)
    self.sources.update(objects.values())
    uses = collections.defaultdict(set)
    listed = subprocess.run(["nm", "-A", *objects], capture_output=True, text=True, check=True).stdout if objects else ""
    for line in listed.splitlines():
      path, _, rest = line.rpartition(":")
      kind, name = rest.split()[-2:]
      if kind == "U":
        uses[objects[path]].add(name)
      elif kind in "TDRBVWi":
        self.homes[name].add(objects[path])
    self.calls: Calls = collections.defaultdict(lambda: collections.defaultdict(set))
    for file, names in uses.items():
      for name in names:
        for home in self.homes.get(name, set()) - {file}:
          self.calls[file][home].add(name)

  def calls_of_rooms(self) -> Calls:
    rooms: Calls = collections.defaultdict(lambda: collections.defaultdict(set))
    for caller, called in self.calls.items():
      for home, names in called.items():
        if room_of(caller) != room_of(home):
          rooms[room_of(caller)][room_of(home)] |= names
    return rooms


def circles_in(calls: Calls) -> list[list[str]]:
  """The strongly connected parts of more than one node (Tarjan's way, without recursion)."""
  number, low, open_nodes, found = {}, {}, [], []
  for start in sorted(calls):
    todo = [(start, iter(sorted(calls.get(start, ()))))] if start not in number else []
    while todo:
      node, rest = todo[-1]
      if node not in number:
        number[node] = low[node] = len(number)
        open_nodes.append(node)
      for other in rest:
        if other not in number:
          todo.append((other, iter(sorted(calls.get(other, ())))))
          break
        if other in open_nodes:
          low[node] = min(low[node], low[other])
      else:
        todo.pop()
        if todo:
          low[todo[-1][0]] = min(low[todo[-1][0]], low[node])
        if low[node] == number[node]:
          at = open_nodes.index(node)
          if len(open_nodes) - at > 1:
            found.append(sorted(open_nodes[at:]))
          del open_nodes[at:]
  return sorted(found, key=lambda circle: (-len(circle), circle))


def declared_in(text: str) -> set[str]:
  """Names that a header declares for the linker: functions, and data that is extern."""
  text = NOISE.sub(" ", text)
  outside, depth = [], 0
  for piece in re.split(r"([{}])", text):
    if piece == "{":
      depth += 1
    elif piece == "}":
      depth -= 1
      outside.append(";")
    elif depth == 0:
      outside.append(piece)
  names = set()
  for statement in "".join(outside).split(";"):
    statement = statement.strip()
    if re.match(r"(static|typedef)\b", statement):
      continue
    if match := EXTERN.match(statement):
      names.add(match.group(1))
    depth = 0
    for piece in re.split(r"([()])", statement):
      if piece in ("(", ")"):
        depth += 1 if piece == "(" else -1
      elif depth == 0 and (match := NAME.search(piece)):
        names.add(match.group(1))
  return names


def called_by_none(objects: Objects):
  """Functions that no other file calls and ALONE does not list, and names there that others call or that are gone."""
  called = {name for homes in objects.calls.values() for names in homes.values() for name in names}
  alone = {name: home for name, homes in objects.homes.items() for home in homes
           if re.fullmatch(r"mp_\w+", name) and name not in called}
  listed = set(" ".join(ALONE.values()).split())
  for name in sorted(set(alone) - listed):
    yield f"{alone[name]}: no other file calls {name}: make it static, remove it, or list it in tests/layers_objects.py"
  for name in sorted(listed - set(alone)):
    # Debug builds call what release builds do not.
    if name not in called or name not in ALONE["called by assertions and macros of debug builds"].split():
      yield f"{name}, which tests/layers_objects.py lists as called by no file, is called or gone"


def missing_objects(root: pathlib.Path, objects: Objects, rooms):
  """Sources that were not built, so their names are unknown."""
  for room in rooms:
    for file in sorted((root / room).glob("*.c")):
      path = file.relative_to(root).as_posix()
      if path not in objects.sources and room not in MODULES:
        yield f"{path} has no object: build first"


def wrong_calls(objects: Objects, knows: dict[str, list[str]]):
  """Calls that the table does not allow."""
  for caller, called in sorted(objects.calls.items()):
    for home, names in sorted(called.items()):
      room, other = room_of(caller), room_of(home)
      if other != room and other not in knows.get(room, ()):
        yield f"{caller}: {room}/ may not call {home} ({', '.join(sorted(names)[:4])})"


def strange_declarations(root: pathlib.Path, objects: Objects, rooms):
  """What a header of one room declares and a file of another one defines."""
  for room in rooms:
    for header in sorted((root / room).glob("*.h")):
      for name in sorted(declared_in(header.read_text())):
        homes = objects.homes.get(name, set())
        if homes and all(room_of(home) != room for home in homes):
          yield f"{header.relative_to(root)}: {name} is declared here and defined in {', '.join(sorted(homes))}"


def circles_of_rooms(objects: Objects):
  for circle in circles_in(objects.calls_of_rooms()):
    yield f"{len(circle)} rooms call each other in a circle: {', '.join(circle)}"


def circles_of_files(objects: Objects):
  """Circles that CIRCLES does not list, and entries that are none."""
  listed = {tuple(sorted(f"{room}/{name}.c" for name in names.split())) for room, names, _ in CIRCLES}
  found = {tuple(circle) for circle in circles_in(objects.calls)}
  for circle in sorted(found - listed):
    yield f"{len(circle)} files call each other in a circle that tests/layers_objects.py does not list: {', '.join(circle)}"
  for circle in sorted(listed - found):
    yield f"the circle of {', '.join(circle)}, which tests/layers_objects.py lists, is none"
  count = sum(map(len, found))
  if count > MAX_IN_CIRCLES:
    yield f"{count} files stand in circles, more than {MAX_IN_CIRCLES}"


def findings(root: pathlib.Path, build: pathlib.Path, knows: dict[str, list[str]]) -> list[str]:
  objects = Objects(root, build)
  return [*missing_objects(root, objects, knows), *wrong_calls(objects, knows), *circles_of_rooms(objects),
          *strange_declarations(root, objects, knows), *circles_of_files(objects),
          *called_by_none(objects)]
