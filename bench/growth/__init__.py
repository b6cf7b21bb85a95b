"""How costs grow: each as a curve, not a time."""
