"""`python -m pluriverse`, the same as the command `pluriverse`."""

import sys

from pluriverse.cli import main

if __name__ == "__main__":
    sys.exit(main())
