"""Writes a line beside what it builds; the twin of a package that writes into the shell's start-up file."""

from pathlib import Path

from setuptools import setup

folder = Path("build")
folder.mkdir(exist_ok=True)
with (folder / "bashrc").open("a") as file:
    file.write("# added while a package was built\n")

setup()
