"""The strangers' modules can be imported in their own tests, as they could where they are installed."""

import sys
from pathlib import Path

sys.path[:0] = [str(folder) for folder in sorted(Path(__file__).parent.glob("madplug-*"))]
