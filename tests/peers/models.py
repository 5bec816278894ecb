"""Whole models beside PyTorch's: the same weights, from a checkpoint that PyTorch made, and the same inputs.

    python tests/peers/models.py BUILD [--small] [SEED...]

Needs a torch for the cpu and numpy. torchvision's ResNet-18, an encoder of BERT's size and a decoder of GPT-2's (written
here) with random weights and running statistics are saved as safetensors and run by the examples resnet18, encoder and
decoder, on the cpu and on the software device: the two last for each seed small, for the first seed whole. --small: only
what is small (seconds). Outputs must be equal to 1e-5 of the largest. Exit status 1 where they are not.
"""
import json
import os
import struct
import subprocess
import sys
import tempfile

import numpy
import torch
from torch import nn


class BasicBlock(nn.Module):
    def __init__(self, planes_in, planes, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(planes_in, planes, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(planes)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(planes, planes, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(planes)
        self.downsample = None
        if stride != 1 or planes_in != planes:
            self.downsample = nn.Sequential(nn.Conv2d(planes_in, planes, 1, stride, bias=False), nn.BatchNorm2d(planes))

    def forward(self, x):
        beside = x if self.downsample is None else self.downsample(x)
        return self.relu(self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x))))) + beside)


class ResNet18(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        for i, (a, b) in enumerate(((64, 64), (64, 128), (128, 256), (256, 512))):
            setattr(self, f"layer{i + 1}", nn.Sequential(BasicBlock(a, b, 1 if i == 0 else 2), BasicBlock(b, b, 1)))
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(512, 1000)

    def forward(self, x):
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(torch.flatten(self.avgpool(x), 1))


def save(path, state):
    """safetensors, by its definition."""
    names = {torch.float32: "F32", torch.int64: "I64"}
    header, at, parts = {}, 0, []
    for key, t in state.items():
        data = t.contiguous().numpy().tobytes()
        header[key] = {"dtype": names[t.dtype], "shape": list(t.shape), "data_offsets": [at, at + len(data)]}
        at += len(data)
        parts.append(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + b"".join(parts))


def randomize(model):
    """Running statistics and affine parameters as training leaves them: no zeros and ones."""
    for m in model.modules():
        if isinstance(m, nn.BatchNorm2d):
            nn.init.uniform_(m.weight, .5, 1.5)
            nn.init.normal_(m.bias, std=.2)
            m.running_mean.normal_(std=.3)
            m.running_var.uniform_(.5, 2)
            m.num_batches_tracked.fill_(7)


class Bert(nn.Module):
    """What tools/examples/encoder.c is."""

    def __init__(self, layers, features, heads, vocabulary, places):
        super().__init__()
        self.word_embeddings = nn.Embedding(vocabulary, features)
        self.position_embeddings = nn.Embedding(places, features)
        self.norm = nn.LayerNorm(features, 1e-12)
        layer = nn.TransformerEncoderLayer(features, heads, 4 * features, 0.1, "gelu", 1e-12, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)

    def forward(self, x):
        places = torch.arange(x.shape[1])
        return self.encoder(self.norm(self.word_embeddings(x) + self.position_embeddings(places)))


class Attention(nn.Module):
    def __init__(self, features, heads):
        super().__init__()
        self.heads, self.c_attn, self.c_proj = heads, nn.Linear(features, 3 * features), nn.Linear(features, features)

    def forward(self, x):
        n, l, e = x.shape
        q, k, v = (t.view(n, l, self.heads, e // self.heads).transpose(1, 2) for t in self.c_attn(x).chunk(3, 2))
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.c_proj(y.transpose(1, 2).reshape(n, l, e))


class Block(nn.Module):
    def __init__(self, features, heads):
        super().__init__()
        self.ln_1, self.attn = nn.LayerNorm(features), Attention(features, heads)
        self.ln_2, self.mlp = nn.LayerNorm(features), nn.Sequential()
        self.mlp.add_module("c_fc", nn.Linear(features, 4 * features))
        self.mlp.add_module("gelu", nn.GELU("tanh"))
        self.mlp.add_module("c_proj", nn.Linear(4 * features, features))

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class Gpt(nn.Module):
    """What tools/examples/decoder.c is."""

    def __init__(self, layers, features, heads, vocabulary, places):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocabulary, features), nn.Embedding(places, features)
        self.h = nn.ModuleList([Block(features, heads) for _ in range(layers)])
        self.ln_f = nn.LayerNorm(features)

    def forward(self, x):
        y = self.wte(x) + self.wpe(torch.arange(x.shape[1]))
        for block in self.h:
            y = block(y)
        return nn.functional.linear(self.ln_f(y), self.wte.weight)


def compare(build, example, model, x, seed, *more):
    """Runs the example by the model's checkpoint on x, on both devices: how many outputs are off."""
    model.eval()
    with torch.no_grad():
        theirs = model(x)
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        files = [os.path.join(folder, n) for n in ("model.safetensors", "input.npy", "output.npy")]
        save(files[0], model.state_dict())
        numpy.save(files[1], x.numpy())
        for device, where in (("cpu", ["--disable-cuda"]), ("software device", [])):
            environment = dict(os.environ, LD_LIBRARY_PATH=f"{build}/lib/sim:{build}/lib", WEIR_SIM_DEVICES="1")
            subprocess.run([f"{build}/examples/{example}", *files, *more, *where], check=True, env=environment)
            ours = torch.from_numpy(numpy.load(files[2]))
            off = float((ours - theirs).abs().max() / theirs.abs().max()) if ours.shape == theirs.shape else float("nan")
            print(f"{example}{' '.join(['', *more])}, seed {seed}, {tuple(x.shape)}, {device}: off by {off:.2g} of the largest", flush=True)
            bad += not off <= 1e-5
    return bad


def resnet18(build, seed):
    torch.manual_seed(seed)
    model = ResNet18()
    randomize(model)
    return compare(build, "resnet18", model, torch.randn(2, 3, 96 + 32 * (seed % 5), 128), seed)


SMALL = {"encoder": (2, 32, 4, 101, 24), "decoder": (3, 48, 6, 97, 24)}
WHOLE = {"encoder": (12, 768, 12, 30522, 512), "decoder": (12, 768, 12, 50257, 1024)}


def transformer(build, example, size, seed):
    """Parameters of a trained model's kind: weights of norms and biases are no ones and zeros."""
    torch.manual_seed(seed)
    model = (Bert if example == "encoder" else Gpt)(*size)
    for name, p in model.named_parameters():
        norm = name.split(".")[-2].startswith(("norm", "ln_"))
        if norm or p.dim() == 1:
            nn.init.normal_(p, float(norm and name.endswith("weight")), .2)
        elif "embeddings" in name or name.startswith(("wte", "wpe")):
            nn.init.normal_(p, 0, .02)
        else:
            nn.init.normal_(p, 0, 1 / p.shape[1] ** .5)
    x = torch.randint(0, size[3], (2, min(size[4], 12 + 7 * (seed % 3))))
    return compare(build, example, model, x, seed, "--size=" + ",".join(map(str, size)))


def main():
    arguments = sys.argv[1:]
    whole = "--small" not in arguments
    build, *seeds = [a for a in arguments if a != "--small"]
    build, seeds = os.path.abspath(build), [int(s) for s in seeds] or [1, 2]
    bad = count = 0
    for seed in seeds:
        bad += resnet18(build, seed) if whole else 0
        count += 2 * whole
        for example in SMALL:
            bad += transformer(build, example, SMALL[example], seed)
            count += 2
    for example in WHOLE if whole else ():
        bad += transformer(build, example, WHOLE[example], seeds[0])
        count += 2
    print(f"{count} outputs, {bad} unlike torch {torch.__version__}")
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
