"""Protocol 0.3 over gRPC: both halves."""
