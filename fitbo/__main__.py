"""``python -m fitbo``."""

import sys

from fitbo.cli import main

sys.exit(main())
