#!/usr/bin/env python3
"""Takes screenshots of the built site in a headless browser, and reports what does not fit.

    tools/site/shots.py [--site build/site/html] [--out FOLDER] [PAGE ...]

Each page is shown on a wide screen, light and dark, and on a phone.  The script prints these errors, and then exits
with 1: a page that is wider than its screen, a picture that does not load, a block of text that is cut off, a table
without a header.  It requires Chromium (Debian: chromium-headless-shell, or chromium).
"""

import argparse
import contextlib
import dataclasses
import functools
import html
import http.server
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator

BROWSERS = ("chromium-headless-shell", "chromium", "google-chrome")
PAGES = ["index.html", "command.html", "why.html"]
VIEWS = {"wide": (1400, 1000, "light"), "dark": (1400, 1000, "dark"), "phone": (480, 900, "light")}
# Runs at the end of a page, and stores its findings as an attribute of the root element.
PROBE = """<script>
document.body.dataset.theme = "%s";
addEventListener("load", () => {
  const root = document.documentElement, problems = [];
  const name = e => e.tagName.toLowerCase() + " " + (e.getAttribute("src") || e.textContent.trim().slice(0, 40));
  if (root.scrollWidth > root.clientWidth)
    problems.push(`the page is ${root.scrollWidth - root.clientWidth} px wider than the screen`);
  for (const e of document.images)
    if (!e.naturalWidth) problems.push("no picture: " + name(e));
  const scrolls = e => e && (["auto", "scroll"].includes(getComputedStyle(e).overflowX) || scrolls(e.parentElement));
  for (const e of document.querySelectorAll("article p, article li, article pre, article table, article img"))
    if (e.getBoundingClientRect().right > root.clientWidth + 1 && !scrolls(e)) problems.push("cut off: " + name(e));
  for (const e of document.querySelectorAll("article table"))
    if (![...e.querySelectorAll("th")].some(head => head.textContent.trim())) problems.push("no header: " + name(e));
  if (!document.querySelector("footer").textContent.includes("authors")) problems.push("no footer");
  root.dataset.problems = JSON.stringify(problems);
});
</script>"""


class Handler(http.server.SimpleHTTPRequestHandler):
  """Serves the site; a page requested with `?THEME` gets the probe at its end."""

  def do_GET(self):
    path, _, theme = self.path.partition("?")
    file = pathlib.Path(self.directory) / path.lstrip("/")
    if theme not in ("light", "dark") or not file.is_file():
      return super().do_GET()
    page = file.read_text().replace("</body>", PROBE % theme + "</body>").encode()
    self.send_response(200)
    self.send_header("Content-Type", "text/html; charset=utf-8")
    self.send_header("Content-Length", str(len(page)))
    self.end_headers()
    self.wfile.write(page)

  def log_message(self, *_):
    pass


@contextlib.contextmanager
def served(site: pathlib.Path) -> Iterator[str]:
  server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=str(site)))
  threading.Thread(target=server.serve_forever, daemon=True).start()
  try:
    yield f"http://127.0.0.1:{server.server_port}"
  finally:
    server.shutdown()


def browser() -> str | None:
  return next((path for path in map(shutil.which, BROWSERS) if path), None)


def browse(address: str, size: tuple[int, int], *options: str) -> str:
  with tempfile.TemporaryDirectory() as profile:
    done = subprocess.run([browser(), "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
                           f"--user-data-dir={profile}", f"--window-size={size[0]},{size[1]}", *options, address],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, timeout=100, check=True)
  return done.stdout


@dataclasses.dataclass
class Shot:
  page: str
  view: str
  file: pathlib.Path
  problems: list[str]


def shots(site: pathlib.Path, out: pathlib.Path, pages: list[str], views: dict = VIEWS) -> Iterator[Shot]:
  out.mkdir(parents=True, exist_ok=True)
  with served(site) as address:
    for page in pages:
      for view, (width, height, theme) in views.items():
        file = out / f"{page.removesuffix('.html').replace('/', '_')}_{view}.png"
        shown = browse(f"{address}/{page}?{theme}", (width, height), f"--screenshot={file}", "--dump-dom")
        found = re.search(r'data-problems="([^"]*)"', shown)
        yield Shot(page, view, file, json.loads(html.unescape(found[1])) if found else ["the page's probe did not run"])


def main() -> int:
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("pages", nargs="*", default=PAGES, metavar="PAGE")
  parser.add_argument("--site", type=pathlib.Path, default=pathlib.Path(__file__).parents[2] / "build/site/html")
  parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("shots"))
  arguments = parser.parse_args()
  if browser() is None:
    sys.exit("there is no Chromium: apt install chromium-headless-shell")
  code = 0
  for shot in shots(arguments.site, arguments.out, arguments.pages):
    print(shot.file, *(f"  {problem}" for problem in shot.problems), sep="\n")
    code |= bool(shot.problems)
  return code


if __name__ == "__main__":
  sys.exit(main())
