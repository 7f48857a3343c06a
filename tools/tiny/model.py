"""The llama architecture in PyTorch, no larger than it must be.

Rope turns the pairs (2i, 2i+1) of a head, which is the order GGUF files of this architecture use; so export.py
writes the weights of q and k as they are. The output matrix is the embedding (tied).
"""
import dataclasses

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclasses.dataclass
class Shape:
    """5.4 million weights: 5.7 MB as Q8_0. Depth was preferred to width, 32 divides every row."""
    n_vocab: int = 4096
    n_ctx: int = 512
    n_layer: int = 8
    n_head: int = 8
    n_kv: int = 4
    d_model: int = 256
    d_ff: int = 448
    rope_base: float = 10000.0
    eps: float = 1e-5

    @property
    def d_head(self):
        return self.d_model // self.n_head


class RMSNorm(nn.Module):
    def __init__(self, d, eps):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d))
        self.eps = eps

    def forward(self, x):
        y = x.float()
        return (y * torch.rsqrt(y.square().mean(-1, keepdim=True) + self.eps) * self.weight).to(x.dtype)


def rotate(x, cos, sin):
    """x [n, head, t, d_head]; each pair (2i, 2i+1) is turned by its angle."""
    a, b = x.float().unflatten(-1, (-1, 2)).unbind(-1)
    return torch.stack((a * cos - b * sin, a * sin + b * cos), -1).flatten(-2).to(x.dtype)


class Layer(nn.Module):
    def __init__(self, s):
        super().__init__()
        d_kv = s.n_kv * s.d_head
        self.shape = s
        self.attn_norm = RMSNorm(s.d_model, s.eps)
        self.attn_q = nn.Linear(s.d_model, s.d_model, bias=False)
        self.attn_k = nn.Linear(s.d_model, d_kv, bias=False)
        self.attn_v = nn.Linear(s.d_model, d_kv, bias=False)
        self.attn_output = nn.Linear(s.d_model, s.d_model, bias=False)
        self.ffn_norm = RMSNorm(s.d_model, s.eps)
        self.ffn_gate = nn.Linear(s.d_model, s.d_ff, bias=False)
        self.ffn_up = nn.Linear(s.d_model, s.d_ff, bias=False)
        self.ffn_down = nn.Linear(s.d_ff, s.d_model, bias=False)

    def forward(self, x, cos, sin):
        s = self.shape
        h = self.attn_norm(x)
        q, k, v = (f(h).unflatten(-1, (-1, s.d_head)).transpose(1, 2) for f in (self.attn_q, self.attn_k, self.attn_v))
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        k, v = (t.repeat_interleave(s.n_head // s.n_kv, 1) for t in (k, v))
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.attn_output(a.transpose(1, 2).flatten(-2))
        h = self.ffn_norm(x)
        return x + self.ffn_down(F.silu(self.ffn_gate(h)) * self.ffn_up(h))


class Llama(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.shape = s
        self.token_embd = nn.Embedding(s.n_vocab, s.d_model)
        self.blk = nn.ModuleList(Layer(s) for _ in range(s.n_layer))
        self.output_norm = RMSNorm(s.d_model, s.eps)
        angle = torch.outer(torch.arange(s.n_ctx).float(),
                            s.rope_base ** (-torch.arange(0, s.d_head, 2).float() / s.d_head))
        self.register_buffer("cos", angle.cos(), persistent=False)
        self.register_buffer("sin", angle.sin(), persistent=False)
        for name, p in self.named_parameters():
            if p.dim() == 2:
                last = name.endswith(("attn_output.weight", "ffn_down.weight"))
                nn.init.normal_(p, std=0.02 / (2 * s.n_layer) ** 0.5 if last else 0.02)

    def forward(self, ids, targets=None):
        t = ids.shape[1]
        x = self.token_embd(ids)
        for layer in self.blk:
            x = layer(x, self.cos[:t], self.sin[:t])
        logits = F.linear(self.output_norm(x), self.token_embd.weight)
        if targets is None:
            return logits
        return F.cross_entropy(logits.float().flatten(0, 1), targets.flatten())
