"""Writes the trained model as GGUF (Q8_0 matrices, F32 norms), with tokenizer and chat template.

  python3 export.py model.npz tokenizer.json quern-tiny.gguf [--f32]

The writer knows only what this one file needs: version 3, little-endian, alignment 32.
"""
import argparse
import json
import os
import struct

import numpy as np

from bpe import CONTROL, Tokenizer

U32, F32, BOOL, STRING, ARRAY, I32 = 4, 6, 7, 8, 9, 5
ALIGN = 32
TYPE_F32, TYPE_Q8_0 = 0, 8

TEMPLATE = (
    "{{ bos_token }}{% for m in messages %}"
    "{% if m['role'] in ['system', 'assistant'] %}<|{{ m['role'] }}|>{% else %}<|user|>{% endif %}"
    "{{ m['content'] | trim }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
ABOUT = ("A very small language model that comes with quern: it writes little stories and simple explanations in English. "
         "Trained only on text written by the generator in tools/tiny.")


def text(s):
    data = s.encode()
    return struct.pack("<Q", len(data)) + data


def value(kind, v):
    """One metadata value with its type in front; a list becomes an array of `kind`."""
    one = {U32: lambda x: struct.pack("<I", x), I32: lambda x: struct.pack("<i", x), F32: lambda x: struct.pack("<f", x),
           BOOL: lambda x: struct.pack("<?", x), STRING: text}[kind]
    if isinstance(v, list):
        return struct.pack("<IIQ", ARRAY, kind, len(v)) + b"".join(map(one, v))
    return struct.pack("<I", kind) + one(v)


def q8_0(w):
    """Rows of blocks: 32 weights share a half-precision scale d = max/127; halves round away from zero."""
    blocks = w.astype(np.float32).reshape(-1, 32)
    d = np.abs(blocks).max(1, keepdims=True) / np.float32(127)
    inverse = np.divide(np.float32(1), d, out=np.zeros_like(d), where=d > 0)
    x = blocks * inverse
    q = np.copysign(np.floor(np.abs(x) + np.float32(0.5)), x).astype(np.int8)
    return np.concatenate((d.astype("<f2").view(np.uint8), q.view(np.uint8)), 1).tobytes()


def metadata(shape, tok, file_type):
    tokens = tok.token_texts()
    n_control = len(CONTROL)
    return [
        ("general.architecture", STRING, "llama"), ("general.type", STRING, "model"), ("general.name", STRING, "quern-tiny"),
        ("general.description", STRING, ABOUT), ("general.license", STRING, "apache-2.0"), ("general.languages", STRING, ["en"]),
        ("general.file_type", U32, file_type), ("general.quantization_version", U32, 2),
        ("llama.vocab_size", U32, shape["n_vocab"]), ("llama.context_length", U32, shape["n_ctx"]),
        ("llama.embedding_length", U32, shape["d_model"]), ("llama.block_count", U32, shape["n_layer"]),
        ("llama.feed_forward_length", U32, shape["d_ff"]), ("llama.attention.head_count", U32, shape["n_head"]),
        ("llama.attention.head_count_kv", U32, shape["n_kv"]),
        ("llama.attention.layer_norm_rms_epsilon", F32, shape["eps"]),
        ("llama.rope.dimension_count", U32, shape["d_model"] // shape["n_head"]),
        ("llama.rope.freq_base", F32, shape["rope_base"]),
        ("tokenizer.ggml.model", STRING, "gpt2"), ("tokenizer.ggml.pre", STRING, "gpt-2"),
        ("tokenizer.ggml.tokens", STRING, tokens),
        ("tokenizer.ggml.token_type", I32, [3] * n_control + [1] * (len(tokens) - n_control)),
        ("tokenizer.ggml.merges", STRING, tok.merge_texts()),
        ("tokenizer.ggml.bos_token_id", U32, CONTROL.index("<|begin|>")),
        ("tokenizer.ggml.eos_token_id", U32, CONTROL.index("<|end|>")),
        ("tokenizer.ggml.add_bos_token", BOOL, True), ("tokenizer.ggml.add_eos_token", BOOL, False),
        ("tokenizer.chat_template", STRING, TEMPLATE),
    ]


def write(path, weights, meta, quantise):
    """Header, metadata, tensor table, then the tensors, each at a multiple of ALIGN; renamed when whole."""
    table, data = [], bytearray()
    for name in weights.files:
        if name == "shape":
            continue
        w = weights[name].astype(np.float32)
        small = w.ndim == 1 or not quantise
        table.append(text(name) + struct.pack("<I", w.ndim) + struct.pack(f"<{w.ndim}Q", *reversed(w.shape))
                     + struct.pack("<IQ", TYPE_F32 if small else TYPE_Q8_0, len(data)))
        data += w.astype("<f4").tobytes() if small else q8_0(w)
        data += bytes(-len(data) % ALIGN)
    head = b"GGUF" + struct.pack("<IQQ", 3, len(table), len(meta))
    head += b"".join(text(k) + value(kind, v) for k, kind, v in meta) + b"".join(table)
    with open(path + ".part", "wb") as f:
        f.write(head + bytes(-len(head) % ALIGN) + data)
    os.replace(path + ".part", path)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("model")
    p.add_argument("tokenizer")
    p.add_argument("out")
    p.add_argument("--f32", action="store_true", help="keep the matrices as they are, for checking")
    a = p.parse_args()
    weights = np.load(a.model)
    meta = metadata(json.loads(str(weights["shape"])), Tokenizer.load(a.tokenizer), 0 if a.f32 else 7)
    write(a.out, weights, meta, not a.f32)
    print(f"{a.out}: {os.path.getsize(a.out)} bytes")


if __name__ == "__main__":
    main()
