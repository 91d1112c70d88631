"""Valid, benign arguments for a declared item, several tries in order, and the places in them for payloads.

Pure and bounded by itself but for two things that a hostile schema can make endless: its regular expressions and its
validation. Both are handed in (`Regexes`), so that they run in a child with limits (`harness.pipeline.synthesizer`).
"""
