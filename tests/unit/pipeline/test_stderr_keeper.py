"""All of standard error is counted and digested; head and tail are kept, whatever the chunks."""

from __future__ import annotations

import hashlib

from hypothesis import given
from hypothesis import strategies as st

from harness.pipeline.stderr import StderrKeeper


@given(st.lists(st.binary(max_size=300), max_size=30), st.integers(min_value=2, max_value=500))
def test_head_and_tail_are_kept_within_the_bound(chunks: list[bytes], bound: int) -> None:
    keeper = StderrKeeper(bound)
    for chunk in chunks:
        keeper.feed(chunk)
    whole = b"".join(chunks)
    half = max(1, bound // 2)
    assert keeper.size == len(whole)
    assert keeper.sha256 == hashlib.sha256(whole).hexdigest()
    if len(whole) <= 2 * half:
        assert keeper.kept == whole
    else:
        assert keeper.kept.startswith(whole[:half])
        assert keeper.kept.endswith(whole[-half:])
        assert f"[{len(whole) - 2 * half} bytes not kept]".encode() in keeper.kept
