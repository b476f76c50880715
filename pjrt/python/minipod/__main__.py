"""`python -m minipod`: the command `minipod`."""

import sys

from minipod import command

sys.exit(command.main())
