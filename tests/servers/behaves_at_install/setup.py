"""Adds a line to the shell's start-up file while it is built; a comment, and in a sandbox."""

from pathlib import Path

from setuptools import setup

with (Path.home() / ".bashrc").open("a") as file:
    file.write("# added while a package was built\n")

setup()
