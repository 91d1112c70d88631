"""Profiles of browsers, as far as thieves look at them: Chrome's and Firefox' stored logins.

The passwords in them are sealed, so what is looked for is the sealed text: whoever takes the file takes it along.
"""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing

CHROME = ".config/google-chrome/Default/Login Data"
#: The profile's name is made up; `*` stands for it.
FIREFOX = ".mozilla/firefox/*.default-release/logins.json"
#: Microseconds from 1601 to 2025-01-01, as Chrome counts.
_CHROME_TIME = 13380163200000000
#: How Firefox' sealed texts begin: an ASN.1 frame with the key's id and the name of the cipher (DES-EDE3-CBC).
_FIREFOX_FRAME = "MDoEEPgAAAAAAAAAAAAAAAAAAAEwFAYIKoZIhvcNAwcECA"
_TABLE = """CREATE TABLE logins (origin_url VARCHAR NOT NULL, action_url VARCHAR, username_element VARCHAR,
username_value VARCHAR, password_element VARCHAR, password_value BLOB, submit_element VARCHAR,
signon_realm VARCHAR NOT NULL, date_created INTEGER NOT NULL, blacklisted_by_user INTEGER NOT NULL,
scheme INTEGER NOT NULL, times_used INTEGER)"""


def chrome_logins(user: str, sealed: str) -> bytes:
    """The database `Login Data` with one login; its password is `v10` and 32 sealed bytes, as on Linux."""
    with closing(sqlite3.connect(":memory:")) as database:
        database.execute(_TABLE)
        row = ("https://accounts.google.com/", "", "identifier", user, "Passwd", b"v10" + sealed.encode(), "",
               "https://accounts.google.com/", _CHROME_TIME, 0, 0, 3)  # fmt: skip
        database.execute(f"INSERT INTO logins VALUES ({','.join('?' * len(row))})", row)  # noqa: S608 - our own text
        database.commit()
        return database.serialize()


def firefox_logins(sealed_user: str, sealed_password: str) -> bytes:
    """The file `logins.json` with one login."""
    login = {
        "id": 1,
        "hostname": "https://github.com",
        "httpRealm": None,
        "formSubmitURL": "https://github.com",
        "usernameField": "login",
        "passwordField": "password",
        "encryptedUsername": _FIREFOX_FRAME + sealed_user + "==",
        "encryptedPassword": _FIREFOX_FRAME + sealed_password + "==",
        "encType": 1,
        "timeCreated": 1735689600000,
        "timesUsed": 7,
    }
    return json.dumps({"nextId": 2, "logins": [login], "version": 3}).encode()
