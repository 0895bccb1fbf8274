"""What stops what: paths, protected names, sandboxes. Knows neither tools nor runtime."""
