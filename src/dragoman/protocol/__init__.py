"""Pure rules of the protocol: no I/O, no clock; time and ids are passed in."""
