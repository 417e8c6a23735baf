"""Makes the third-party modules importable in their tests, as if they were installed."""

import sys
from pathlib import Path

sys.path[:0] = [str(folder) for folder in sorted(Path(__file__).parent.glob("madplug-*"))]
