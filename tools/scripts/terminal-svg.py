#!/usr/bin/env python3
"""terminal-svg.py COLUMNS COMMAND...: runs a command on a terminal of that width and prints an SVG
picture of what it wrote, colours included. make report-picture makes tools/report.svg with it."""
import html
import os
import pty
import re
import struct
import sys
import fcntl
import termios
import unicodedata

COLORS = {30: "#45475a", 31: "#f38ba8", 32: "#a6e3a1", 33: "#f9e2af", 34: "#89b4fa", 35: "#cba6f7",
          36: "#94e2d5", 37: "#cdd6f4", 90: "#7f849c", 91: "#f38ba8", 92: "#a6e3a1", 93: "#f9e2af",
          94: "#89b4fa", 95: "#cba6f7", 96: "#94e2d5", 97: "#ffffff"}
CELL_W, CELL_H, MARGIN = 7.83, 17, 14


def run(columns, command):
    pid, fd = pty.fork()
    if pid == 0:
        fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
        os.environ["TERM"] = "xterm-256color"
        os.environ.pop("NO_COLOR", None)
        os.execvp(command[0], command)
    out = b""
    while True:
        try:
            piece = os.read(fd, 65536)
        except OSError:
            break
        if not piece:
            break
        out += piece
    if os.waitpid(pid, 0)[1]:
        sys.exit("the command failed: " + out.decode(errors="replace"))
    return out.decode().replace("\r\n", "\n").rstrip("\n").split("\n")


def spans(line):
    """(column, text, style) for the pieces of a line."""
    style, column = {}, 0
    for piece in re.split(r"(\033\[[0-9;]*m)", line):
        if piece.startswith("\033["):
            for code in map(int, (piece[2:-1] or "0").split(";")):
                if code == 0:
                    style = {}
                elif code == 1:
                    style = {**style, "font-weight": "bold"}
                elif code == 2:
                    style = {**style, "fill-opacity": "0.6"}
                elif code in COLORS:
                    style = {**style, "fill": COLORS[code]}
        elif piece:
            yield column, piece, style
            column += sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in piece)


def main():
    columns, command = int(sys.argv[1]), sys.argv[2:]
    lines = run(columns, command)
    width = columns * CELL_W + 2 * MARGIN
    height = len(lines) * CELL_H + 2 * MARGIN
    print(f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
          f'viewBox="0 0 {width:.0f} {height:.0f}">')
    print(f'<rect width="100%" height="100%" rx="8" fill="#1e1e2e"/>')
    print('<g font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" font-size="13" fill="#cdd6f4" '
          'xml:space="preserve">')
    for row, line in enumerate(lines):
        y = MARGIN + row * CELL_H + 13
        for column, text, style in spans(line):
            if not text.strip():
                continue
            attributes = "".join(f' {k}="{v}"' for k, v in style.items())
            print(f'<text x="{MARGIN + column * CELL_W:.1f}" y="{y}"{attributes} '
                  f'textLength="{len(text) * CELL_W:.1f}">{html.escape(text)}</text>')
    print("</g></svg>")


main()
