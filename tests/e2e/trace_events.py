"""trace_events.py - a strict reader of Chrome's trace JSON, as the format's description and Perfetto's importer demand it: what passes here
is opened by both. Written from the description; knows nothing of quern.
  check(doc) raises AssertionError with the event that is wrong."""

import collections
import math

NAMES = {"process_name": "name", "thread_name": "name", "process_labels": "labels", "process_sort_index": "sort_index",
         "thread_sort_index": "sort_index"}


def is_number(v):
    return isinstance(v, (int, float)) and not isinstance(v, bool) and math.isfinite(v)


def is_id(v):
    return isinstance(v, int) and not isinstance(v, bool) and 0 <= v < 2 ** 31


def check_span(ev):
    assert is_number(ev["ts"]) and ev["ts"] >= 0 and is_number(ev["dur"]) and ev["dur"] >= 0, ev
    assert set(ev) <= {"ph", "pid", "tid", "name", "cat", "ts", "dur", "args"}, ev


def check_meta(ev):
    assert ev["name"] in NAMES and NAMES[ev["name"]] in ev["args"], ev
    wanted = str if NAMES[ev["name"]] in ("name", "labels") else int
    assert isinstance(ev["args"][NAMES[ev["name"]]], wanted), ev


def check_counter(ev):
    assert is_number(ev["ts"]) and ev["ts"] >= 0 and ev["args"] and all(is_number(v) for v in ev["args"].values()), ev


def check_instant(ev):
    assert is_number(ev["ts"]) and ev["ts"] >= 0 and ev.get("s", "t") in ("g", "p", "t"), ev


KINDS = {"X": check_span, "M": check_meta, "C": check_counter, "i": check_instant}


def check_tracks(events):
    """Spans of a track lie inside each other or apart: an importer keeps a stack for each, in whole nanoseconds, and drops or misplaces what
    does not fit; in doubles of microseconds, as pages add them, the same must hold."""
    tracks = collections.defaultdict(list)
    for ev in events:
        if ev["ph"] == "X":
            tracks[ev["pid"], ev["tid"]].append(ev)
    for track, spans in tracks.items():
        for begin_of, end_of in ((lambda s: round(s["ts"] * 1000), lambda s: round(s["ts"] * 1000) + round(s["dur"] * 1000)),
                                 (lambda s: s["ts"], lambda s: s["ts"] + s["dur"])):
            stack = []
            for s in sorted(spans, key=lambda s: (begin_of(s), -end_of(s))):
                while stack and end_of(stack[-1]) <= begin_of(s):
                    stack.pop()
                assert not stack or end_of(s) <= end_of(stack[-1]), (track, stack[-1], s)
                stack.append(s)


def check(doc):
    assert isinstance(doc, dict) and doc.get("displayTimeUnit", "ms") in ("ms", "ns")
    named = set()
    for ev in doc["traceEvents"]:
        assert isinstance(ev, dict) and isinstance(ev["name"], str) and ev["name"] and is_id(ev["pid"]) and is_id(ev["tid"]), ev
        assert isinstance(ev.get("cat", ""), str) and isinstance(ev.get("args", {}), dict), ev
        assert ev["ph"] in KINDS, ev
        KINDS[ev["ph"]](ev)
        if ev["ph"] == "M":
            key = (ev["name"], ev["pid"], ev["tid"])
            assert key not in named, ev
            named.add(key)
    for ev in doc["traceEvents"]:
        if ev["ph"] == "X":
            assert ("thread_name", ev["pid"], ev["tid"]) in named and ("process_name", ev["pid"], 0) in named, ("a track without a name", ev)
    check_tracks(doc["traceEvents"])
