"""One debate: its cell, the checks of what components return, and the loop, which asks the decision protocol."""
