"""The run's certificate authority: made from a seed, minting a certificate for every name that is asked for."""

from __future__ import annotations

import datetime
import ipaddress
import os
import ssl
import tempfile
from collections import OrderedDict
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

#: Order of the P-256 group (SEC 2, version 2, section 2.4.2).
_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
_SUBJECT = x509.Name(
    [
        x509.NameAttribute(NameOID.COUNTRY_NAME, "US"),
        x509.NameAttribute(NameOID.ORGANIZATION_NAME, "Northbridge Networks"),
        x509.NameAttribute(NameOID.COMMON_NAME, "Northbridge Root CA G2"),
    ]
)
MOST_CONTEXTS = 512
#: Days that certificates of names are valid, before and after now. Some targets live with a clock that is 400 days
#: ahead; and Apple's clients take none that is valid for more than 825.
VALID_BEFORE, VALID_AFTER = 30, 760


class Authority:
    """`seed`: 32 bytes; the same seed gives the same key. `pem` is the certificate that clients are to trust."""

    def __init__(self, seed: bytes) -> None:
        self._key = ec.derive_private_key(int.from_bytes(seed, "big") % (_ORDER - 1) + 1, ec.SECP256R1())
        self._leaf = ec.generate_private_key(ec.SECP256R1())
        self._leaf_pem = self._leaf.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        public = self._key.public_key()
        builder = self._builder(_SUBJECT, public, 400, 3650)
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        builder = builder.add_extension(_usage(authority=True), critical=True)
        self.pem = builder.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
        self._contexts: OrderedDict[str, ssl.SSLContext] = OrderedDict()

    def context(self, host: str) -> ssl.SSLContext:
        """A server's context with a certificate for `host` (a name or an address). Raises ssl.SSLError, ValueError."""
        if host in self._contexts:
            self._contexts.move_to_end(host)
            return self._contexts[host]
        made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        made.minimum_version = ssl.TLSVersion.TLSv1_2
        made.set_alpn_protocols(["http/1.1"])
        descriptor, path = tempfile.mkstemp()
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(self._leaf_pem + self._certificate(host))
            made.load_cert_chain(path)
        finally:
            Path(path).unlink()
        self._contexts[host] = made
        if len(self._contexts) > MOST_CONTEXTS:
            self._contexts.popitem(last=False)
        return made

    def _certificate(self, host: str) -> bytes:
        try:
            name: x509.GeneralName = x509.IPAddress(ipaddress.ip_address(host))
        except ValueError:
            name = x509.DNSName(host.encode("idna").decode() if not host.isascii() else host)
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host[:64])])
        builder = self._builder(subject, self._leaf.public_key(), VALID_BEFORE, VALID_AFTER)
        builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        builder = builder.add_extension(_usage(authority=False), critical=True)
        builder = builder.add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        builder = builder.add_extension(x509.SubjectAlternativeName([name]), critical=False)
        signed = builder.sign(self._key, hashes.SHA256())
        return signed.public_bytes(serialization.Encoding.PEM)

    def _builder(
        self, subject: x509.Name, public: ec.EllipticCurvePublicKey, before: int, after: int
    ) -> x509.CertificateBuilder:
        now = datetime.datetime.now(datetime.UTC).replace(microsecond=0)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(_SUBJECT)
            .public_key(public)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(days=before))
            .not_valid_after(now + datetime.timedelta(days=after))
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
        )


def _usage(*, authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=not authority,
        key_cert_sign=authority,
        crl_sign=authority,
        encipher_only=False,
        decipher_only=False,
    )
