"""For tests of what is built on dragoman: contracts as tests that anybody's parts can be run through."""
