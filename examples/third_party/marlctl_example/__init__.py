"""An environment and an algorithm for marlctl, to copy."""
