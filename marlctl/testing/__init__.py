"""What a plugin author tests with.

A toy world that starts at once, small games every learner must solve, a stacked network as plain torch has it,
and a comparison of steps to the bit.
"""
