"""``python -m vff``: the command line."""

import sys

from vff.cli import main

if __name__ == "__main__":
    sys.exit(main())
