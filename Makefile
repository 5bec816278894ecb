# Weir's one Makefile. Each folder adds its part in FOLDER/rules.mk; nothing here is recursive.
#
#   O=DIR        output tree (default build)
#   V=1          show the commands
#   SAN=address,undefined | SAN=thread    sanitizer build (put it into its own O=)
#   CUDA_HOME=   the CUDA Toolkit (else nvcc on PATH, else /usr/local/cuda)

O         ?= build
PREFIX    ?= /usr/local
DESTDIR   ?=
CC        ?= cc
CUDA_HOME ?= $(or $(patsubst %/bin/nvcc,%,$(realpath $(shell command -v nvcc 2>/dev/null))),$(wildcard /usr/local/cuda))
NVCC      ?= $(CUDA_HOME)/bin/nvcc
CUDA_LIB  := $(firstword $(wildcard $(CUDA_HOME)/lib64 $(CUDA_HOME)/targets/*/lib $(CUDA_HOME)/lib))

VERSION := $(shell sed -n 's/^.define WEIR_VERSION  *"\(.*\)"/\1/p' core/weir.h)

ifeq ($(V),1)
Q    :=
say  := @:
else
Q    := @
say  := @printf '  %-7s %s\n'
endif

MAKEFLAGS += --no-builtin-rules
ifeq ($(filter -j%,$(MAKEFLAGS)),)
MAKEFLAGS += -j$(shell nproc)
endif
.DELETE_ON_ERROR:
.SUFFIXES:

WARN     := -Wall -Wextra -Wpedantic -Werror -Wstrict-prototypes -Wmissing-prototypes
CFLAGS   ?= -O2 -g
CPPFLAGS += -I. -D_GNU_SOURCE -DWEIR_VERSION_BUILD='"$(VERSION)"'
BASEFLAGS = -std=gnu11 $(WARN) -fPIC -fvisibility=hidden -fno-strict-aliasing -fno-omit-frame-pointer \
            -fno-semantic-interposition -MMD -MP $(if $(SAN),-fsanitize=$(SAN) -fno-sanitize-recover=all)
LDSAN    := $(if $(SAN),-fsanitize=$(SAN))
CUDAINC  := -isystem $(CUDA_HOME)/include

BIN := $(O)/bin
LIB := $(O)/lib
SIM := $(O)/lib/sim
OBJ := $(O)/obj

all:

# objects: $(call objs,a.c b.S) -> $(OBJ)/a.o ...
objs = $(patsubst %,$(OBJ)/%.o,$(basename $(1)))

$(OBJ)/%.o: %.c | check-tools
	@mkdir -p $(@D)
	$(say) CC $<
	$(Q)$(CC) $(BASEFLAGS) $(CPPFLAGS) $(CFLAGS) $(EXTRA_$(firstword $(subst /, ,$<))) $(EXTRA_$<) -c $< -o $@

$(OBJ)/%.o: %.S | check-tools
	@mkdir -p $(@D)
	$(say) AS $<
	$(Q)$(CC) $(CPPFLAGS) -g -fPIC -MMD -MP -c $< -o $@

include $(wildcard core/rules.mk cuda/rules.mk interpose/rules.mk reports/rules.mk tools/rules.mk tests/rules.mk)

-include $(shell find $(OBJ) -name '*.d' 2>/dev/null)

clean:
	$(say) CLEAN $(O)
	$(Q)rm -rf $(O)

.PHONY: all clean
