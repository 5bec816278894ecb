"""Whole models beside PyTorch's: the same weights, from a checkpoint that PyTorch made, and the same inputs.

    python tests/peers/models.py BUILD [SEED...]

Needs a torch for the cpu and numpy. torchvision's ResNet-18 (its architecture and names, written here) with random
weights and running statistics is saved as safetensors and run by the example resnet18, on the cpu and on the software
device. Outputs must be equal to 1e-5 of the largest. Exit status 1 where they are not.
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


def resnet18(build, seed):
    torch.manual_seed(seed)
    model = ResNet18()
    randomize(model)
    model.eval()
    x = torch.randn(2, 3, 96 + 32 * (seed % 5), 128)
    with torch.no_grad():
        theirs = model(x)
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        files = [os.path.join(folder, n) for n in ("resnet18.safetensors", "images.npy", "output.npy")]
        save(files[0], model.state_dict())
        numpy.save(files[1], x.numpy())
        for device, more in (("cpu", ["--disable-cuda"]), ("software device", [])):
            environment = dict(os.environ, LD_LIBRARY_PATH=f"{build}/lib/sim:{build}/lib")
            subprocess.run([f"{build}/examples/resnet18", *files, *more], check=True, env=environment)
            ours = torch.from_numpy(numpy.load(files[2]))
            off = float((ours - theirs).abs().max() / theirs.abs().max())
            print(f"resnet18, seed {seed}, {tuple(x.shape)}, {device}: off by {off:.2g} of the largest")
            bad += not off <= 1e-5
    return bad


def main():
    build, seeds = os.path.abspath(sys.argv[1]), [int(s) for s in sys.argv[2:]] or [1, 2]
    bad = sum(resnet18(build, s) for s in seeds)
    print(f"{2 * len(seeds)} outputs, {bad} unlike torch {torch.__version__}")
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
