"""What a plugin author tests with: a toy world that starts at once, and small games every learner must solve."""
