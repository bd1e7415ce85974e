"""marlctl as a contestant. What it does is what its commands do."""
