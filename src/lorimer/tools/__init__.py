"""Tools: their declaration, their schemas, the registry, and the dispatcher that runs their
calls."""
