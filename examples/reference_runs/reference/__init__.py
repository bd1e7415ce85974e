"""The reference runs: what is run, how it is judged, and the page that tells of it."""
