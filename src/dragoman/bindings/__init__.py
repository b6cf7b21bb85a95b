"""Layer 3: the HTTP bindings. One pure codec each, and the endpoint that serves both."""
