"""What stands behind the edges of the lab: gRPC servers without TLS, and servers that misbehave.

Run in the namespace: ``python backends.py``. The first gRPC server says what grpc-go's
apiserver-network-proxy says: initial metadata of Connect, and its words for an unknown method.
"""

from __future__ import annotations

import asyncio
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc  # type: ignore[import-untyped]  # grpcio ships no annotations
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import PingReceived, RequestReceived

KONNECTIVITY, OTHER_GRPC = 50051, 50054
SILENT, WITHHOLDING, GOAWAY = 50052, 50055, 50056
FRONT_END, STRANGER, CLOSING = 50057, 50058, 50059


class AgentService(grpc.GenericRpcHandler):  # type: ignore[misc]  # the same
    """Konnectivity's agent port as far as a prober may see it. Connect fails the lab."""

    def service(self, details: Any) -> Any:
        if details.method == "/AgentService/Connect":
            sys.stdout.write("SOMEBODY REGISTERED\n")
            sys.stdout.flush()
        _, service, method = details.method.split("/")

        def unknown(_request: bytes, context: Any) -> bytes:
            words = f"unknown method {method} for service {service}"
            context.abort(grpc.StatusCode.UNIMPLEMENTED, words)
            return b""

        return grpc.unary_unary_rpc_method_handler(unknown)


class OtherService(grpc.GenericRpcHandler):  # type: ignore[misc]  # the same
    """A server that has this service, or none, and says so as grpc-go does."""

    def __init__(self, known: str = "") -> None:
        self.known = known

    def service(self, details: Any) -> Any:
        _, service, method = details.method.split("/")
        words = f"unknown service {service}"
        if service == self.known:
            words = f"unknown method {method} for service {service}"

        def unknown(_request: bytes, context: Any) -> bytes:
            context.abort(grpc.StatusCode.UNIMPLEMENTED, words)
            return b""

        return grpc.unary_unary_rpc_method_handler(unknown)


def serve_grpc() -> list[Any]:
    """Konnectivity's two ports, and gRPC servers that know nothing of it."""
    servers = []
    for port, handlers in (
        (KONNECTIVITY, [AgentService()]),
        (FRONT_END, [OtherService("ProxyService")]),
        (STRANGER, [OtherService()]),
        (OTHER_GRPC, []),
    ):
        # A call whose data is late keeps its thread; all situations of the lab ask at once.
        server = grpc.server(ThreadPoolExecutor(64), handlers)
        server.add_insecure_port(f"127.0.0.1:{port}")
        server.start()
        servers.append(server)
    return servers


async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Takes everything and says nothing."""
    while await reader.read(65536):
        pass
    writer.close()


async def closing(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Ends what TLS has just opened."""
    writer.close()


async def withholding(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Speaks HTTP/2 and never answers a call."""
    http = H2Connection(H2Configuration(client_side=False))
    http.initiate_connection()
    writer.write(http.data_to_send())
    while data := await reader.read(65536):
        http.receive_data(data)
        writer.write(http.data_to_send())
    writer.close()


async def goaway(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """As grpc-go: the unknown method is answered, and the first PING is one too many."""
    http = H2Connection(H2Configuration(client_side=False, header_encoding="utf-8"))
    http.initiate_connection()
    writer.write(http.data_to_send())
    while data := await reader.read(65536):
        for event in http.receive_data(data):
            if isinstance(event, PingReceived):
                http.close_connection(11, b"too_many_pings")
            elif isinstance(event, RequestReceived):
                words = "unknown method NetprobeNoSuchMethod for service AgentService"
                answer = [(":status", "200"), ("grpc-status", "12"), ("grpc-message", words)]
                http.send_headers(event.stream_id or 1, answer, end_stream=True)
        writer.write(http.data_to_send())
    writer.close()


async def main() -> None:
    """Serve until killed."""
    servers = serve_grpc()
    handlers = {SILENT: silent, WITHHOLDING: withholding, GOAWAY: goaway, CLOSING: closing}
    for port, handler in handlers.items():
        await asyncio.start_server(handler, ["0.0.0.0", "::"], port)
    sys.stdout.write("READY\n")
    sys.stdout.flush()
    await asyncio.Event().wait()
    del servers


if __name__ == "__main__":
    asyncio.run(main())
