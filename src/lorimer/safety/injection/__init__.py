"""Defence against injected instructions: what is visible, what is trusted, what may run."""
