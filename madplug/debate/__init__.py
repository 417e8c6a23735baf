"""One debate: its cell, its loop, and the checks of what components return."""
