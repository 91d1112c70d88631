"""Servers with one fault each, held out. Usage: faults.py MODE ROOT (or --list).

Written without sight of the payloads, and not changed since their first run: what is found here tells how well faults
are found that nobody tuned for. `NAME-benign` is the twin of `NAME`: as like it as can be, without the fault.
"""

import ast
import base64
import io
import ipaddress
import json
import operator
import os
import pickle
import re
import shlex
import socket
import sqlite3
import string
import subprocess
import sys
import tarfile
import urllib.parse
import urllib.request
import xml.sax
import xml.sax.handler
from pathlib import Path

MODES: dict = {}
ROOT = Path(sys.argv[2] if len(sys.argv) > 2 else ".").absolute()


def mode(label, tool, description, /, **properties):
    """Register a mode of one tool; properties are schemas, or descriptions of strings."""

    def register(act):
        fields = {k: v if isinstance(v, dict) else {"type": "string", "description": v} for k, v in properties.items()}
        schema = {"type": "object", "properties": fields, "required": list(fields)}
        MODES[label] = ({"name": tool, "description": description, "inputSchema": schema}, act)
        return act

    return register


def output(argv, **options):
    """What a program prints."""
    done = subprocess.run(argv, capture_output=True, text=True, timeout=10, check=False, cwd=ROOT, **options)
    return (done.stdout + done.stderr)[:20000]


# --- Commands

RESOLVE = ("resolve_host", "Look up the addresses of a host name.")


@mode("shell-host", *RESOLVE, host="The host name.")
def shell_host(host):
    return output(f"getent hosts {host} || echo unknown", shell=True)


@mode("shell-host-benign", *RESOLVE, host="The host name.")
def shell_host_benign(host):
    if not re.fullmatch(r"[A-Za-z0-9.-]+", host) or host.startswith("-"):
        raise ValueError("that is no host name")
    return output(["getent", "hosts", host]) or "unknown"


BANNER = ("make_banner", "Draw a banner in capital letters.")


@mode("shell-quoted", *BANNER, p1="First line.")
def shell_quoted(p1):
    return output(["sh", "-c", f'printf "%s\\n" "{p1}" | tr a-z A-Z'])


@mode("shell-quoted-benign", *BANNER, p1="First line.")
def shell_quoted_benign(p1):
    return output(["sh", "-c", f"printf '%s\\n' {shlex.quote(p1)} | tr a-z A-Z"])


SORT = ("sort_lines", "Sort the lines of a text file.")


@mode("option-sort", *SORT, file="Name of the file in the workspace.")
def option_sort(file):
    return output(["sort", file], stdin=subprocess.DEVNULL)


@mode("option-sort-benign", *SORT, file="Name of the file in the workspace.")
def option_sort_benign(file):
    path = (ROOT / file).resolve()
    if not path.is_relative_to(ROOT.resolve()):
        raise ValueError("that is outside of the workspace")
    return output(["sort", "--", str(path)], stdin=subprocess.DEVNULL)


# --- Files

READ = ("read_note", "Read a note from the notes folder.")


@mode("read-join", *READ, name="File name of the note.")
def read_join(name):
    return (ROOT / name).read_text()


@mode("read-join-benign", *READ, name="File name of the note.")
def read_join_benign(name):
    path = (ROOT / name).resolve()
    if not path.is_relative_to(ROOT.resolve()):
        raise ValueError("notes lie in the notes folder only")
    return path.read_text()


READ_PATH = ("show_file", "Show a file below the allowed directory.")


@mode("read-prefix", *READ_PATH, path="Path of the file.")
def read_prefix(path):
    full = os.path.realpath(os.path.join(ROOT, path))
    if not full.startswith(str(ROOT)):
        raise ValueError("access denied")
    return Path(full).read_text()


@mode("read-prefix-benign", *READ_PATH, path="Path of the file.")
def read_prefix_benign(path):
    full = os.path.realpath(os.path.join(ROOT, path))
    if os.path.commonpath([full, os.path.realpath(ROOT)]) != os.path.realpath(ROOT):
        raise ValueError("access denied")
    return Path(full).read_text()


@mode("read-lexical", *READ_PATH, path="Path of the file.")
def read_lexical(path):
    full = os.path.normpath(os.path.join(ROOT, path))
    if os.path.commonpath([full, ROOT]) != str(ROOT):
        raise ValueError("access denied")
    return Path(full).read_text()


@mode("read-lexical-benign", *READ_PATH, path="Path of the file.")
def read_lexical_benign(path):
    return read_prefix_benign(path)


WRITE = ("store", "Store a text under a key.")


@mode("write-key", *WRITE, a="The key.", b="The text.")
def write_key(a, b):
    place = ROOT / "store" / a
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(b)
    return "stored"


@mode("write-key-benign", *WRITE, a="The key.", b="The text.")
def write_key_benign(a, b):
    place = ROOT / "store" / re.sub(r"[^A-Za-z0-9_-]", "_", a)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(b)
    return "stored"


UNPACK = ("unpack", "Unpack a tar archive of the workspace into its own folder.")


@mode("tar-slip", *UNPACK, archive="Path of the archive.")
def tar_slip(archive):
    with tarfile.open(ROOT / archive) as tar:
        tar.extractall(ROOT / "unpacked", filter="fully_trusted")
        return "\n".join(tar.getnames()[:100])


@mode("tar-slip-benign", *UNPACK, archive="Path of the archive.")
def tar_slip_benign(archive):
    with tarfile.open(read_inside(archive)) as tar:
        tar.extractall(ROOT / "unpacked", filter="data")
        return "\n".join(tar.getnames()[:100])


def read_inside(name):
    """The path of a file that lies inside, links followed."""
    path = (ROOT / name).resolve()
    if not path.is_relative_to(ROOT.resolve()):
        raise ValueError("access denied")
    return path


# --- The network

PREVIEW = ("preview", "Get the first lines of a public web page. Addresses of internal networks are refused.")


@mode("fetch-words", *PREVIEW, url="Address of the page.")
def fetch_words(url):
    if re.search(r"localhost|127\.0\.0\.1|169\.254\.169\.254", url):
        raise ValueError("internal addresses are refused")
    with urllib.request.urlopen(url, timeout=5) as page:
        return page.read(4000).decode(errors="replace")


class NoRedirect(urllib.request.HTTPRedirectHandler):
    """Follows nothing."""

    def redirect_request(self, *args):
        return None


@mode("fetch-words-benign", *PREVIEW, url="Address of the page.")
def fetch_words_benign(url):
    parts = urllib.parse.urlsplit(url)
    found = socket.getaddrinfo(parts.hostname, parts.port or 443, type=socket.SOCK_STREAM)
    if not all(ipaddress.ip_address(entry[4][0]).is_global for entry in found):
        raise ValueError("internal addresses are refused")
    with urllib.request.build_opener(NoRedirect).open(url, timeout=5) as page:
        return page.read(4000).decode(errors="replace")


# --- Interpreters

PEOPLE = ("find_person", "Find a person of the address book by name.")


def people():
    """A small address book."""
    book = sqlite3.connect(":memory:")
    book.execute("CREATE TABLE people (name TEXT, city TEXT)")
    book.executemany("INSERT INTO people VALUES (?, ?)", [("Sam", "Oslo"), ("Ada", "London")])
    return book


@mode("sql-name", *PEOPLE, name="The name.")
def sql_name(name):
    return str(people().execute(f"SELECT name, city FROM people WHERE name = '{name}'").fetchall())


@mode("sql-name-benign", *PEOPLE, name="The name.")
def sql_name_benign(name):
    return str(people().execute("SELECT name, city FROM people WHERE name = ?", (name,)).fetchall())


SUM = ("total", "Add up the prices of a list, for example 2+3.50.")


@mode("eval-sum", *SUM, x="The prices.")
def eval_sum(x):
    return str(eval(x))


SIGNS = {ast.Add: operator.add, ast.Sub: operator.sub}


def add_up(node):
    """Plus and minus, and nothing else."""
    if isinstance(node, ast.Expression):
        return add_up(node.body)
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return node.value
    if isinstance(node, ast.BinOp) and type(node.op) in SIGNS:
        return SIGNS[type(node.op)](add_up(node.left), add_up(node.right))
    raise ValueError("only sums are understood")


@mode("eval-sum-benign", *SUM, x="The prices.")
def eval_sum_benign(x):
    return str(add_up(ast.parse(x, mode="eval")))


class Shop:
    """What letters are made from."""

    secret = "s3cr3t-" + base64.b16encode(os.urandom(8)).decode()
    name = "Corner Shop"


LETTER = ("letter", "Fill a letter: {shop.name} stands for the name of the shop.")


@mode("format-letter", *LETTER, text="The letter.")
def format_letter(text):
    return text.format(shop=Shop())


@mode("format-letter-benign", *LETTER, text="The letter.")
def format_letter_benign(text):
    return string.Template(text.replace("{shop.name}", "${shop}")).safe_substitute(shop=Shop.name)


STATE = ("restore", "Restore the state that was saved earlier.")


@mode("pickle-state", *STATE, state="The saved state, in base64.")
def pickle_state(state):
    return str(pickle.loads(base64.b64decode(state)))[:2000]


@mode("pickle-state-benign", *STATE, state="The saved state, in base64.")
def pickle_state_benign(state):
    return str(json.loads(base64.b64decode(state)))[:2000]


class Words(xml.sax.handler.ContentHandler):
    """Collects the text of a document."""

    def __init__(self):
        super().__init__()
        self.words = []

    def characters(self, content):
        self.words.append(content)


XML = ("xml_text", "The text of an XML document, without its tags.")


def parse(document, outside):
    """Read a document, and what it refers to where `outside` is true."""
    reader, words = xml.sax.make_parser(), Words()
    reader.setFeature(xml.sax.handler.feature_external_ges, outside)
    reader.setContentHandler(words)
    reader.parse(io.StringIO(document))
    return "".join(words.words)


@mode("xml-entities", *XML, document="The document.")
def xml_entities(document):
    return parse(document, True)


@mode("xml-entities-benign", *XML, document="The document.")
def xml_entities_benign(document):
    return parse(document, False)


# --- Disclosure and exhaustion

ABOUT = ("diagnostics", "Facts for a problem report.")
SECTION = {"type": "string", "enum": ["versions", "all"], "description": "Which facts."}


@mode("environment", *ABOUT, section=SECTION)
def environment(section):
    return f"Python {sys.version}\n" + "\n".join(f"{k}={v}" for k, v in os.environ.items())


@mode("environment-benign", *ABOUT, section=SECTION)
def environment_benign(section):
    return f"Python {sys.version}\n{len(os.environ)} variables are set"


CHECK = ("check_name", "Is this a good name: letters only, in groups of one or more?")


@mode("regex-name", *CHECK, name="The name.")
def regex_name(name):
    return str(bool(re.match(r"^([A-Za-z]+)+$", name)))


@mode("regex-name-benign", *CHECK, name="The name.")
def regex_name_benign(name):
    return str(bool(re.match(r"^[A-Za-z]{1,100}$", name[:200])))


def answer(tool, act, method, params):
    """The result for one request, or None for a method that isn't offered."""
    if method == "initialize":
        about = {"capabilities": {"tools": {}}, "serverInfo": {"name": tool["name"], "version": "1"}}
        return {"protocolVersion": "2025-11-25", **about}
    if method == "ping":
        return {}
    if method == "tools/list":
        return {"tools": [tool]}
    if method != "tools/call":
        return None
    try:
        if params.get("name") != tool["name"]:
            raise ValueError("there is no such tool")
        text, failed = act(**params.get("arguments", {})), False
    except Exception as error:
        text, failed = f"failed: {error}", True
    return {"content": [{"type": "text", "text": text}], "isError": failed}


def main():
    """Serve in one mode."""
    if sys.argv[1:] == ["--list"]:
        print("\n".join(sorted(MODES)))
        return
    tool, act = MODES[sys.argv[1]]
    for line in sys.stdin.buffer:
        try:
            message = json.loads(line)
        except ValueError:
            message = None
        if not isinstance(message, dict) or not isinstance(message.get("method"), str) or "id" not in message:
            continue
        params = message.get("params") if isinstance(message.get("params"), dict) else {}
        result = answer(tool, act, message["method"], params)
        reply = {"jsonrpc": "2.0", "id": message["id"]}
        reply |= {"error": {"code": -32601, "message": "Method not found"}} if result is None else {"result": result}
        sys.stdout.write(json.dumps(reply) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
