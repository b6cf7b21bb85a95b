"""Call agents: connect, send, stream, run."""

from dragoman.bindings.grpc.settings import ClientTls, GrpcClientSettings
from dragoman.client.assemble import Assembly
from dragoman.client.card_cache import CardCache, FetchedCard
from dragoman.client.client import Client
from dragoman.client.connection import Connection, connect
from dragoman.client.content import SendOptions
from dragoman.client.conversation import Conversation
from dragoman.client.dialects import V03Settings
from dragoman.client.in_process import InProcess
from dragoman.client.origins import CredentialOriginError
from dragoman.client.progress import StreamEvent
from dragoman.client.reconnect import Reconnect
from dragoman.client.result import Result
from dragoman.client.running import Poll, Pushed
from dragoman.client.settings import CallOptions, Interceptor, MessageOptions
from dragoman.client.streams import ClientStream
from dragoman.client.targets import Target, fetch_card

__all__ = [
    "Assembly",
    "CallOptions",
    "CardCache",
    "Client",
    "ClientStream",
    "ClientTls",
    "Connection",
    "Conversation",
    "CredentialOriginError",
    "FetchedCard",
    "GrpcClientSettings",
    "InProcess",
    "Interceptor",
    "MessageOptions",
    "Poll",
    "Pushed",
    "Reconnect",
    "Result",
    "SendOptions",
    "StreamEvent",
    "Target",
    "V03Settings",
    "connect",
    "fetch_card",
]
