"""Live services over streams: TLS, HTTP, proxies, and who answers there."""
