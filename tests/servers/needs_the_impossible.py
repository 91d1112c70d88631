"""Ends because a program is missing that no sandbox has, whatever it is started with."""

import subprocess

subprocess.run(["acmectl", "version"], check=True)
