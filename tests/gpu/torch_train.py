#!/usr/bin/env python3
"""torch_train.py: trains a small transformer for some steps and prints every loss and a hash of the
weights: the same numbers each time it is run on one machine. check-gpu.sh runs it with PyTorch's own
cache off, so that each tensor is a cudaMalloc and a cudaFree."""
import hashlib
import os

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
import torch  # noqa: E402

torch.manual_seed(7)
torch.use_deterministic_algorithms(True)
torch.backends.cuda.enable_flash_sdp(False)
torch.backends.cuda.enable_mem_efficient_sdp(False)

WIDTH, HEADS, LAYERS, WORDS, BATCH, LENGTH, STEPS = 256, 4, 2, 1000, 8, 64, 30
layer = torch.nn.TransformerEncoderLayer(WIDTH, HEADS, 4 * WIDTH, dropout=0.0, batch_first=True)
model = torch.nn.ModuleDict({"in": torch.nn.Embedding(WORDS, WIDTH), "body": torch.nn.TransformerEncoder(layer, LAYERS),
                             "out": torch.nn.Linear(WIDTH, WORDS)}).cuda()
step = torch.optim.AdamW(model.parameters(), lr=1e-3)
words = torch.randint(0, WORDS, (STEPS, BATCH, LENGTH + 1))  # on the host, pageable
for i in range(STEPS):
    batch = words[i].cuda()
    scores = model["out"](model["body"](model["in"](batch[:, :-1])))
    loss = torch.nn.functional.cross_entropy(scores.reshape(-1, WORDS), batch[:, 1:].reshape(-1))
    step.zero_grad(set_to_none=True)
    loss.backward()
    step.step()
    print(i, loss.item().hex())
digest = hashlib.sha256()
for p in model.parameters():
    digest.update(p.detach().cpu().numpy().tobytes())
print(digest.hexdigest())
