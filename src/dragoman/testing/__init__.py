"""For tests of what is built on dragoman: contracts as tests that anybody's parts can be run through, and faults.

* :mod:`~dragoman.testing.store_contract`, :mod:`~dragoman.testing.sample_task`: for stores;
* :mod:`~dragoman.testing.binding_contract`: for bindings;
* :mod:`~dragoman.testing.serving`: an app on a socket, in the event loop of a test;
* :mod:`~dragoman.testing.process`: a server in a process of its own, to be killed and started again;
* :mod:`~dragoman.testing.load`: callers of every kind, who bear with crashes;
* :mod:`~dragoman.testing.witness`: what callers were told, compared with what is stored;
* :mod:`~dragoman.testing.crashes`: rounds of crashes under load, with all of these;
* :mod:`~dragoman.testing.cutting_proxy`: a bad line;
* :mod:`~dragoman.testing.agentcore_front`: a stand-in for the front of Amazon Bedrock AgentCore.
"""
