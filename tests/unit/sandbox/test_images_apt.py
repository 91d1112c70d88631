"""Reading a machine's apt sources: both formats, third parties, the override."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.model.errors import HarnessError
from harness.sandbox.apt_sources import acquire_settings, choose_mirror, find_mirror, parse_deb822, parse_one_line

ONE_LINE = """
# deb http://old.example/debian bookworm main
deb http://mirror.example/debian bookworm main contrib # a comment
deb-src http://mirror.example/debian bookworm main
deb [arch=amd64 signed-by=/usr/share/keyrings/debian-archive.gpg] http://mirror.example/debian bookworm-updates main
deb http://mirror.example/debian-security bookworm-security main
"""

DEB822 = """# one stanza
Types: deb deb-src
# a comment inside
URIs: https://mirror.example/debian/
Suites: trixie trixie-updates
Components: main
Signed-By:
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
 abc

Types: deb
Enabled: no
URIs: http://disabled.example/debian
Suites: bookworm
Components: main

Types: deb
URIs: https://mirror.example/debian-security
Suites: trixie-security
Components: main
Trusted: yes
"""


def test_one_line_sources() -> None:
    found = parse_one_line(ONE_LINE)
    assert [(source.uri, source.suite, source.components) for source in found] == [
        ("http://mirror.example/debian", "bookworm", ("main", "contrib")),
        ("http://mirror.example/debian", "bookworm-updates", ("main",)),
        ("http://mirror.example/debian-security", "bookworm-security", ("main",)),
    ]
    assert found[1].options == {"Signed-By": "/usr/share/keyrings/debian-archive.gpg"}


def test_deb822_sources_and_what_is_made_of_them() -> None:
    mirror = choose_mirror(parse_deb822(DEB822))
    assert mirror is not None
    text = mirror.sources("bookworm")
    assert "URIs: https://mirror.example/debian/\nSuites: bookworm bookworm-updates\nComponents: main\n" in text
    assert "Signed-By: \n -----BEGIN PGP PUBLIC KEY BLOCK-----\n .\n abc\n" in text
    assert "URIs: https://mirror.example/debian-security\nSuites: bookworm-security\n" in text
    assert "Trusted: yes" in text
    assert [source.suite for source in parse_deb822(text)] == ["bookworm", "bookworm-updates", "bookworm-security"]


@pytest.mark.parametrize(
    "third_party",
    [
        "deb [signed-by=/usr/share/keyrings/vendor.gpg] https://apt.vendor.example bookworm main",
        "deb https://download.vendor.example/linux/debian bookworm stable",
        "deb https://apt.vendor.example/tools tools-bookworm main",
    ],
)
def test_third_parties_are_not_taken_for_debian(third_party: str) -> None:
    mirror = choose_mirror(parse_one_line(third_party + "\n" + ONE_LINE))
    assert mirror is not None and mirror.main.uri == "http://mirror.example/debian"
    assert choose_mirror(parse_one_line(third_party)) is None


def test_another_distribution_is_told_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "sources.list").write_text("deb http://mirror.example/ubuntu noble main\n")
    with pytest.raises(HarnessError, match="HARNESS_APT_MIRROR"):
        find_mirror({}, tmp_path)


def test_the_override_needs_no_sources(tmp_path: Path) -> None:
    mirror = find_mirror({"HARNESS_APT_MIRROR": "http://a.example/debian http://a.example/security"}, tmp_path)
    assert "URIs: http://a.example/security\nSuites: trixie-security" in mirror.sources("trixie")
    assert find_mirror({"HARNESS_APT_MIRROR": "http://a.example/debian"}, tmp_path).security is None


def test_files_of_both_formats_are_read(tmp_path: Path) -> None:
    (tmp_path / "sources.list.d").mkdir()
    (tmp_path / "sources.list.d" / "a.list.save").write_text("deb http://saved.example/debian bookworm main\n")
    (tmp_path / "sources.list.d" / "debian.sources").write_text(DEB822)
    assert find_mirror({}, tmp_path).main.uri == "https://mirror.example/debian/"


def test_only_settings_for_fetching_are_carried_over() -> None:
    dump = (
        'APT::Architecture "amd64";\nAcquire "";\nAcquire::http "";\nAcquire::http::Proxy "http://proxy.example:3128";\n'
        'Acquire::https::CaInfo "/etc/ca.pem";\nAcquire::Check-Date "false";\nAcquire::IndexTargets::x "y";\n'
        'DPkg::Post-Invoke:: "rm -rf /";\nAcquire::httpsomething "x";\n'
    )
    assert acquire_settings(dump) == (
        'Acquire::http::Proxy "http://proxy.example:3128";',
        'Acquire::https::CaInfo "/etc/ca.pem";',
        'Acquire::Check-Date "false";',
    )
