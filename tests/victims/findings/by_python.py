"""by_python.py LIBRARY ARGUMENT...: waster, called by Python: what it wastes is wasted by the line that calls it."""
import ctypes
import sys

waster = ctypes.CDLL(sys.argv[1], mode=ctypes.RTLD_GLOBAL)
words = [x.encode() for x in sys.argv[1:]]
sys.exit(waster.main(len(words), (ctypes.c_char_p * (len(words) + 1))(*words, None)))  # the place
