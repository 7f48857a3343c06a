"""Trains the model for a given time, not for a given number of steps: a lent machine is paid by the minute.

  python3 train.py IDS_DIR TOKENIZER.json OUT_DIR --minutes 8

The learning rate falls along a cosine of the elapsed share of that time, so the run always ends with a
finished schedule. The ids live on the device and batches are random windows of them. A checkpoint
(OUT_DIR/model.npz, float32) is written every minute and at the end, whole or not at all.
"""
import argparse
import dataclasses
import glob
import json
import math
import os
import time

import numpy as np
import torch

from bpe import CONTROL, Tokenizer
from model import Llama, Shape

PROMPTS = (
    "<|begin|>Once upon a time", "<|begin|>The old miller opened the door and", "<|begin|>It was raining when",
    "<|begin|><|user|>Tell me a story about a brave mouse.<|end|><|assistant|>",
    "<|begin|><|user|>How does a mill work?<|end|><|assistant|>", "<|begin|><|user|>Who are you?<|end|><|assistant|>",
)


def load_ids(folder, device):
    """All shards but the last as one tensor on the device, and the last one to validate on."""
    paths = sorted(glob.glob(os.path.join(folder, "*.ids")))
    parts = [torch.from_numpy(np.fromfile(p, dtype=np.uint16).astype(np.int16)) for p in paths]
    return torch.cat(parts[:-1]).to(device), parts[-1].to(device)


def batch(ids, n, n_ctx, generator):
    """n random windows: inputs and the same shifted by one."""
    starts = torch.randint(len(ids) - n_ctx - 1, (n, 1), device=ids.device, generator=generator)
    rows = ids[starts + torch.arange(n_ctx + 1, device=ids.device)].long()
    return rows[:, :-1], rows[:, 1:]


def save(model, path):
    arrays = {n: p.detach().float().cpu().numpy() for n, p in model.named_parameters()}
    arrays["shape"] = np.array(json.dumps(dataclasses.asdict(model.shape)))
    with open(path + ".part", "wb") as f:
        np.savez(f, **arrays)
    os.replace(path + ".part", path)


@torch.no_grad()
def sample(model, tok, prompt, n, temperature, generator):
    ids = tok.encode(prompt)
    device = model.token_embd.weight.device
    for _ in range(n):
        logits = model(torch.tensor([ids[-model.shape.n_ctx:]], device=device))[0, -1].float()
        ids.append(torch.multinomial(torch.softmax(logits / temperature, -1), 1, generator=generator).item())
        if ids[-1] == CONTROL.index("<|end|>"):
            break
    return tok.decode(ids)


def groups(model, decay):
    """Weight decay for the matrices only."""
    matrices = [p for p in model.parameters() if p.dim() == 2]
    return [{"params": matrices, "weight_decay": decay},
            {"params": [p for p in model.parameters() if p.dim() < 2], "weight_decay": 0.0}]


def train(a, model, ids, held):
    """The loop. The clock starts after the first steps, when compilation is done."""
    cuda = ids.is_cuda
    generator = torch.Generator(ids.device).manual_seed(a.seed)
    opt = torch.optim.AdamW(groups(model, 0.1), lr=a.lr, betas=(0.9, 0.95), fused=cuda)
    fast = torch.compile(model) if cuda else model
    cast = torch.autocast(ids.device.type, torch.bfloat16, enabled=cuda)
    start = saved = shown = None
    done, step = 0.0, 0
    while done < 1:
        if step == 3:
            if cuda:
                torch.cuda.synchronize()
            start = saved = shown = time.time()
            if a.until:
                a.minutes = max(a.until - start, 1) / 60
        lr = a.lr * min(1, (step + 1) / a.warmup) * (0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * done)))
        for g in opt.param_groups:
            g["lr"] = lr
        x, y = batch(ids, a.batch, model.shape.n_ctx, generator)
        with cast:
            loss = fast(x, y)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        opt.zero_grad(set_to_none=True)
        step += 1
        if step % 25 or start is None:
            continue
        value, now = loss.item(), time.time()
        done = (now - start) / (a.minutes * 60)
        if not math.isfinite(value):
            raise SystemExit(f"step {step}: the loss is {value}; the last checkpoint is good")
        if now - shown > a.every:
            shown = now
            rate = (step - 3) * a.batch * model.shape.n_ctx / (now - start)
            print(f"step {step} done {done:.2f} loss {value:.4f} lr {lr:.1e} {rate / 1e6:.2f} Mtok/s", flush=True)
        if now - saved > 60:
            saved = now
            save(model, a.path)
    save(model, a.path)
    with torch.no_grad(), cast:
        losses = [fast(*batch(held, a.batch, model.shape.n_ctx, generator)).item() for _ in range(4)]
    print(f"steps {step}, tokens {step * a.batch * model.shape.n_ctx / 1e6:.0f} M, held-out loss {np.mean(losses):.4f}")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("ids_dir")
    p.add_argument("tokenizer")
    p.add_argument("out_dir")
    p.add_argument("--minutes", type=float, default=8)
    p.add_argument("--until", type=float, help="train until this moment (seconds since 1970) instead")
    p.add_argument("--batch", type=int, default=256)
    p.add_argument("--lr", type=float, default=3e-3)
    p.add_argument("--warmup", type=int, default=300)
    p.add_argument("--every", type=float, default=10, help="seconds between two lines of progress")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--layers", type=int, default=Shape.n_layer)
    a = p.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(a.seed)
    torch.set_float32_matmul_precision("high")
    os.makedirs(a.out_dir, exist_ok=True)
    a.path = os.path.join(a.out_dir, "model.npz")
    ids, held = load_ids(a.ids_dir, device)
    tok = Tokenizer.load(a.tokenizer)
    model = Llama(Shape(n_layer=a.layers)).to(device)
    print(f"{sum(x.numel() for x in model.parameters())} weights, {len(ids) / 1e6:.1f} M tokens, {device}", flush=True)
    train(a, model, ids, held)
    generator = torch.Generator(device).manual_seed(a.seed)
    for prompt in PROMPTS:
        print("-----\n" + sample(model, tok, prompt, 200, 0.7, generator), flush=True)


if __name__ == "__main__":
    main()
