"""A remote agent, served again: a client's operations behind an endpoint of ours."""

from dragoman.proxy.app import ProxyApp, proxy_app
from dragoman.proxy.link import UpstreamOptions

__all__ = ["ProxyApp", "UpstreamOptions", "proxy_app"]
