"""Made-up values of any length and alphabet, all from one seed: pure, and the same label gives the same value.

With a seed of 80 random bits, nobody outside of the run can tell or guess them, and nothing in them is fixed.
"""

from __future__ import annotations

import base64
import json
import math
from dataclasses import dataclass

from harness.model.base import sha256_hex

LOWER = "abcdefghijklmnopqrstuvwxyz"
DIGITS = "0123456789"
HEX = DIGITS + "abcdef"
ALNUM = LOWER + LOWER.upper() + DIGITS
BASE32 = LOWER.upper() + "234567"

#: Words by which some servers tell a placeholder; no value may hold one by chance.
_PLACEHOLDERS = ("dummy", "test", "example", "your", "fake", "todo", "xxx", "changeme", "placeholder")


#: What is this random is a secret that nobody else has; less may be a word or a number that occurs elsewhere too.
SECRET_BITS = 64


@dataclass(frozen=True)
class Made:
    """A value that was made up: enough to make its like from another seed."""

    label: str
    text: str
    alphabet: str = ALNUM
    uuid: bool = False

    @property
    def secret(self) -> bool:
        """True when it is random enough to be known again wherever it occurs."""
        return self.uuid or len(self.text) * math.log2(len(self.alphabet)) >= SECRET_BITS


class Material:
    """A source of values, which remembers what it made. `seed`: at least 64 random bits, in any text form."""

    def __init__(self, seed: str) -> None:
        self._seed = seed
        self.made: dict[str, Made] = {}

    def again(self, made: Made) -> str:
        """The value that this source makes where another made `made`."""
        return self.uuid(made.label) if made.uuid else self.text(made.label, len(made.text), made.alphabet)

    def text(self, label: str, length: int, alphabet: str = ALNUM) -> str:
        """`length` characters of `alphabet`, always the same for one `label`."""
        attempt = 0
        while True:
            value, block = "", 0
            while len(value) < length:
                number = int(sha256_hex(f"{self._seed}|{label}|{attempt}|{block}"), 16)
                for _ in range(32):  # 256 bits are more than 32 characters of 64 use
                    number, place = divmod(number, len(alphabet))
                    value += alphabet[place]
                block += 1
            value = value[:length]
            if not any(word in value.lower() for word in _PLACEHOLDERS):
                self.made[value] = Made(label, value, alphabet)
                return value
            attempt += 1

    def uuid(self, label: str) -> str:
        """A version 4 UUID (RFC 9562)."""
        digits = self.text(label, 30, HEX)
        value = f"{digits[:8]}-{digits[8:12]}-4{digits[12:15]}-a{digits[15:18]}-{digits[18:30]}"
        self.made[value] = Made(label, value, HEX, uuid=True)
        return value

    def jwt(self, label: str) -> str:
        """A token of three parts that decodes (RFC 7519); its signature is made up."""
        head = {"alg": "HS256", "typ": "JWT"}
        body = {"iss": "auth", "sub": self.uuid(label), "role": "service_role", "iat": 1735689600, "exp": 4102444800}
        parts = [
            base64.urlsafe_b64encode(json.dumps(part, separators=(",", ":")).encode()).decode().rstrip("=")
            for part in (head, body)
        ]
        return ".".join([*parts, self.text(label, 43)])
