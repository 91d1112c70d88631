"""Payloads: read from text, filled in for a world, and matched with the places where they may stand. Pure.

What a payload's file says is in payloads/README.md; `harness.pipeline.payloads` reads the files.
"""
