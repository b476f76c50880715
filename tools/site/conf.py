"""Sphinx' settings of the site (tools/site/build)."""

project = "minipod"
author = "the authors of minipod"
copyright = "2026, the authors of minipod. Apache License 2.0"
extensions = ["myst_parser"]
myst_enable_extensions = ["attrs_block"]
myst_heading_anchors = 3
exclude_patterns = ["made/*.md"]
html_theme = "furo"
html_title = "minipod"
html_copy_source = False
html_static_path = ["site.css"]
html_css_files = ["site.css"]
# A line of a console block is as long as the program printed it.
pygments_style = "default"
# Blocks contain shell commands and YAML.  The output below a command has no lexer.
suppress_warnings = ["misc.highlighting_failure"]
