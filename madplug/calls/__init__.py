"""A request becomes a call that is granted, attempted, answered and stored.

The gateway of a worker identifies a request, attempts it until it is answered, and retries. The driver of the study
grants its calls, counts them and has them stored. Before that, a call waits for its model's quota and slots.
"""
