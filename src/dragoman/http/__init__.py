"""HTTP: server-sent events, the outbound URL guard, the one HTTP client."""
