"""Byte-level BPE of our own: learns a vocabulary from the text and turns shards into token ids.

  python3 bpe.py learn TEXT_DIR TOKENIZER.json [--vocab 4096] [--sample-mb 64]
  python3 bpe.py encode TEXT_DIR TOKENIZER.json IDS_DIR [--jobs N]      writes uint16 ids, one file per shard

Ids: first the control tokens, then the 256 bytes, then one token per merge. Text is first cut into words by
the gpt-2 pattern; merges never cross a word, so learning works on counted words and encoding remembers words.
"""
import argparse
import collections
import glob
import heapq
import json
import multiprocessing
import os
import re

import numpy as np

CONTROL = ("<|begin|>", "<|end|>", "<|system|>", "<|user|>", "<|assistant|>")
FIRST_BYTE = len(CONTROL)
FIRST_MERGE = FIRST_BYTE + 256

# The gpt-2 pattern for ASCII letters and digits. The writer's text is ASCII only, where the two patterns
# agree; count_words checks that, because Python's re has no \p{L}.
WORD = re.compile(r"'s|'t|'re|'ve|'m|'ll|'d| ?[A-Za-z]+| ?[0-9]+| ?[^\sA-Za-z0-9]+|\s+(?!\S)|\s+")
SPLIT = re.compile("(" + "|".join(re.escape(c) for c in CONTROL) + ")")


def byte_letters():
    """gpt-2's printable stand-in for each byte: GGUF stores token texts in these letters."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    letters, extra = {b: chr(b) for b in plain}, 0
    for b in range(256):
        if b not in letters:
            letters[b] = chr(256 + extra)
            extra += 1
    return letters


class Tokenizer:
    """Merges in order of rank; everything else follows from them."""

    def __init__(self, merges):
        self.merges = [tuple(m) for m in merges]
        self.rank = {m: i for i, m in enumerate(self.merges)}
        self.bytes = [b""] * FIRST_BYTE + [bytes([b]) for b in range(256)]
        for a, b in self.merges:
            self.bytes.append(self.bytes[a] + self.bytes[b])
        self.words = {}

    @classmethod
    def load(cls, path):
        with open(path, encoding="utf-8") as f:
            return cls(json.load(f)["merges"])

    def word(self, text):
        """The ids of one word: always apply the merge that was learned first."""
        ids = self.words.get(text)
        if ids is None:
            ids = [b + FIRST_BYTE for b in text.encode()]
            while len(ids) > 1:
                rank, at = min((self.rank.get(p, 1 << 30), i) for i, p in enumerate(zip(ids, ids[1:])))
                if rank == 1 << 30:
                    break
                ids[at:at + 2] = [FIRST_MERGE + rank]
            self.words[text] = ids
        return ids

    def encode(self, text):
        ids = []
        for part in SPLIT.split(text):
            if part in CONTROL:
                ids.append(CONTROL.index(part))
            else:
                for word in WORD.findall(part):
                    ids += self.word(word)
        return ids

    def decode(self, ids):
        return b"".join(CONTROL[i].encode() if i < FIRST_BYTE else self.bytes[i] for i in ids).decode(errors="replace")

    def token_texts(self):
        """The text of every token as GGUF wants it."""
        letter = byte_letters()
        return list(CONTROL) + ["".join(letter[b] for b in t) for t in self.bytes[FIRST_BYTE:]]

    def merge_texts(self):
        texts = self.token_texts()
        return [f"{texts[a]} {texts[b]}" for a, b in self.merges]


def count_words(job):
    path, n_bytes = job
    counts = collections.Counter()
    with open(path, encoding="utf-8") as f:
        text = f.read(n_bytes)
    if not text.isascii():
        raise SystemExit(f"{path}: the text must be ASCII")
    for part in SPLIT.split(text):
        if part not in CONTROL:
            counts.update(WORD.findall(part))
    return counts


def learn(counts, n_vocab):
    """Merge the most frequent pair again and again, touching only the words that hold it."""
    words = [[b + FIRST_BYTE for b in w.encode()] for w in counts]
    weight = list(counts.values())
    pairs, where = collections.Counter(), collections.defaultdict(set)
    for i, ids in enumerate(words):
        for p in zip(ids, ids[1:]):
            pairs[p] += weight[i]
            where[p].add(i)
    heap = [(-n, p) for p, n in pairs.items()]
    heapq.heapify(heap)
    merges = []
    while len(merges) < n_vocab - FIRST_MERGE and heap:
        n, best = heapq.heappop(heap)
        if pairs.get(best, 0) != -n:
            continue  # an old count; the right one is further down the heap
        new, touched = FIRST_MERGE + len(merges), set()
        merges.append(best)
        for i in where.pop(best):
            ids, k = words[i], 0
            for p in zip(ids, ids[1:]):
                pairs[p] -= weight[i]
                touched.add(p)
            while k + 1 < len(ids):
                if (ids[k], ids[k + 1]) == best:
                    ids[k:k + 2] = [new]
                k += 1
            for p in zip(ids, ids[1:]):
                pairs[p] += weight[i]
                where[p].add(i)
                touched.add(p)
        for p in touched:
            if pairs[p] > 0:
                heapq.heappush(heap, (-pairs[p], p))
    return merges


def encode_shard(job):
    path, tokenizer, out = job
    with open(path, encoding="utf-8") as f:
        ids = np.array(Tokenizer.load(tokenizer).encode(f.read()), dtype=np.uint16)
    ids.tofile(out)
    return len(ids)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("what", choices=("learn", "encode"))
    p.add_argument("text_dir")
    p.add_argument("tokenizer")
    p.add_argument("ids_dir", nargs="?")
    p.add_argument("--vocab", type=int, default=4096)
    p.add_argument("--sample-mb", type=float, default=64)
    p.add_argument("--jobs", type=int, default=os.cpu_count())
    a = p.parse_args()
    shards = sorted(glob.glob(os.path.join(a.text_dir, "text-*.txt")))
    with multiprocessing.Pool(a.jobs) as pool:
        if a.what == "learn":
            counts = collections.Counter()
            for some in pool.imap(count_words, [(s, int(a.sample_mb * 1e6 / len(shards))) for s in shards]):
                counts.update(some)
            merges = learn(counts, a.vocab)
            with open(a.tokenizer, "w", encoding="utf-8") as f:
                json.dump({"merges": merges}, f)
            print(f"{len(counts)} different words, {FIRST_MERGE + len(merges)} tokens")
            return
        os.makedirs(a.ids_dir, exist_ok=True)
        jobs = [(s, a.tokenizer, os.path.join(a.ids_dir, os.path.basename(s)[:-4] + ".ids")) for s in shards]
        print(sum(pool.imap_unordered(encode_shard, jobs)), "tokens")


if __name__ == "__main__":
    main()
