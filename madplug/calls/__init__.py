"""A request becomes a call that is granted, answered and stored."""
