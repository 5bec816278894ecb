# Tools: the weir command, benchmarks, and what packs and installs the rest.

-include $(wildcard tools/examples/rules.mk)

TOOLS_SRCS := $(sort $(wildcard tools/weir/*.c))
TOOLS_OBJS := $(call objs,$(TOOLS_SRCS))
