"""Writes the training text: documents of many kinds, deterministic by seed, in parallel.

  python3 text.py OUT_DIR --mb 800 --jobs 16      writes OUT_DIR/text-000.txt ... one shard per job and round
  python3 text.py --show 5 [--seed N]             prints a few documents

A document ends with <|end|> and begins with <|begin|> (see bpe.py), so that the model learns where texts
begin and end. Chats already end their turns with <|end|>.
"""
import argparse
import multiprocessing
import os
import random

import chats
import essays
import prose
import scenes
import stories
from grammar import Writer, finish

KINDS = (
    (stories.story, 0.32), (scenes.scene, 0.13), (chats.chat, 0.30), (essays.essay, 0.07), (prose.description, 0.04), (prose.explanation, 0.04),
    (prose.howto, 0.03), (prose.animal, 0.03), (prose.letter, 0.02), (prose.diary, 0.015), (prose.news, 0.015),
)


def document(rng):
    """One document with its control tokens."""
    r = rng.random()
    make = prose.verse
    for kind, share in KINDS:
        r -= share
        if r < 0:
            make = kind
            break
    w = Writer(rng)
    if make is chats.chat:
        return "<|begin|>" + make(w)
    text = finish(make(w))
    if make in (stories.story, scenes.scene, essays.essay) and w.chance(0.12):
        text = enter_late(w, text)
    return "<|begin|>" + text + "<|end|>"


def enter_late(w, text):
    """Drop the first few sentences: a prompt may be any sentence, not only the beginning of a story."""
    starts = [i for i in range(1, len(text) // 3) if text[i - 2:i] == ". " and text[i].isupper()]
    return text[w.pick(starts):] if starts else text


def write_shard(job):
    """Write about n_bytes of documents to one file; the shard's number seeds it."""
    path, seed, n_bytes = job
    rng = random.Random(seed)
    size = 0
    with open(path, "w", encoding="utf-8") as f:
        while size < n_bytes:
            doc = document(rng)
            f.write(doc)
            size += len(doc)
    return path


def main():
    p = argparse.ArgumentParser()
    p.add_argument("out", nargs="?")
    p.add_argument("--mb", type=float, default=800)
    p.add_argument("--jobs", type=int, default=os.cpu_count())
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--show", type=int, default=0)
    a = p.parse_args()
    if a.show:
        rng = random.Random(a.seed)
        print("\n=====\n".join(document(rng) for _ in range(a.show)))
        return
    os.makedirs(a.out, exist_ok=True)
    n = a.jobs * 4
    jobs = [(os.path.join(a.out, f"text-{i:03d}.txt"), a.seed * 100003 + i, int(a.mb * 1e6 / n)) for i in range(n)]
    with multiprocessing.Pool(a.jobs) as pool:
        for path in pool.imap_unordered(write_shard, jobs):
            print(path, flush=True)


if __name__ == "__main__":
    main()
