"""The gRPC binding: what both its halves share, and the service. Needs the extra ``grpc``.

``settings`` and ``addresses`` need nothing; everything else is imported only where gRPC is used. The client half is
:mod:`dragoman.client.grpc_transport`, the server around the service :mod:`dragoman.server.grpc_serving`. Both carry
bytes; what these say is the business of a form, ``form`` and ``client_form``, of which each generation of the protocol
has its own.
"""
