"""One command for multi-agent reinforcement learning."""
