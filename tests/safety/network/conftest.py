"""Servers and a certificate authority for the tests of what connects."""

import contextlib
import datetime
import ipaddress
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.net import Authority, Responder, Serve, Server, running


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Start servers: `serve(responder, tls=context)`; all are gone when the test ends."""
    with contextlib.ExitStack() as stack:

        def start(
            respond: Responder, *, tls: ssl.SSLContext | None = None, address: str = "127.0.0.1"
        ) -> Server:
            return stack.enter_context(running(respond, tls, address))

        yield start


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    folder: Path = tmp_path_factory.mktemp("authority")
    now = datetime.datetime.now(datetime.UTC)
    ca_key = ec.generate_private_key(ec.SECP256R1())
    ca_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Test authority")])

    def builder(subject: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(ca_name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(days=1))
            .not_valid_after(now + datetime.timedelta(days=2))
        )

    ca = (
        builder(ca_name, ca_key)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(ca_key, hashes.SHA256())
    )

    def issue(*hosts: str) -> ssl.SSLContext:
        key = ec.generate_private_key(ec.SECP256R1())
        general: list[x509.GeneralName] = []
        for host in hosts:
            try:
                general.append(x509.IPAddress(ipaddress.ip_address(host)))
            except ValueError:
                general.append(x509.DNSName(host))
        cert = (
            builder(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, hosts[0])]), key)
            .add_extension(x509.SubjectAlternativeName(general), critical=False)
            .sign(ca_key, hashes.SHA256())
        )
        place = folder / f"{len(list(folder.iterdir()))}.pem"
        place.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
            + cert.public_bytes(serialization.Encoding.PEM)
        )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(place)

        def note(sock: ssl.SSLObject, name: str | None, ctx: ssl.SSLContext) -> None:
            context.seen_name = name  # type: ignore[attr-defined]

        context.sni_callback = note
        return context

    return Authority(ca.public_bytes(serialization.Encoding.PEM).decode(), issue)
