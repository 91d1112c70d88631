"""Reports: from a `ScanResult` to text. Nothing here does I/O, reads a clock or computes a verdict.

Text that may come from a target goes through `escape` on its way out, and nowhere else.
"""
