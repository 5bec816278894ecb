# Weir's one Makefile. Each folder adds its part in FOLDER/rules.mk; nothing here is recursive, except
# that a target which sets the machine up (deps) builds in a second make, after the set-up.
# `make help` lists the targets.
#
#   O=DIR        output tree (default build)
#   V=1          show the commands
#   SAN=address,undefined | SAN=thread    sanitizer build (put it into its own O=)
#   CUDA_HOME=   the CUDA Toolkit (else nvcc on PATH, else /usr/local/cuda, else what make deps fetches)
#   PREFIX= LIBDIR= DESTDIR=              where install puts things

O         ?= build
SAN       ?=
V         ?=
PREFIX    ?= /usr/local
LIBDIR    ?= $(PREFIX)/lib
DESTDIR   ?=
ifeq ($(origin CC),default)
CC        := gcc
endif
ifeq ($(origin CXX),default)
CXX       := g++
endif
TOOLKIT   := $(CURDIR)/build/toolkit# what make deps fetches from PyPI where no Toolkit is
CUDA_HOME ?= $(or $(patsubst %/bin/nvcc,%,$(realpath $(shell command -v nvcc 2>/dev/null))),$(patsubst %/bin/nvcc,%,$(firstword $(wildcard /usr/local/cuda/bin/nvcc $(TOOLKIT)/nvidia/cu13/bin/nvcc))),/usr/local/cuda)
NVCC      ?= $(CUDA_HOME)/bin/nvcc
CUDA_LIB  := $(firstword $(wildcard $(CUDA_HOME)/lib64 $(CUDA_HOME)/targets/*/lib $(CUDA_HOME)/lib))

VERSION := $(shell sed -n 's/^.define WEIR_VERSION  *"\(.*\)"/\1/p' core/weir.h)
ARCH    := $(shell uname -m)

ifeq ($(V),1)
Q    :=
say  := @:
else
Q    := @
say  := @printf '  %-7s %s\n'
MAKEFLAGS += --no-print-directory
endif

MAKEFLAGS += --no-builtin-rules
# As many jobs as processors, unless told otherwise. GNU make 4.3 does not show -j here, so its own
# command line is asked; a make below another has that one's jobs.
ifeq ($(MAKELEVEL),0)
ifeq ($(shell tr '\0' '\n' </proc/$$PPID/cmdline | grep -m1 -E '^(-[a-zA-Z]*j|--jobs)'),)
MAKEFLAGS += -j$(shell nproc)
endif
endif
.DELETE_ON_ERROR:
.SUFFIXES:
.DEFAULT_GOAL := all

WARN     := -Wall -Wextra -Wpedantic -Werror -Wstrict-prototypes -Wmissing-prototypes
CFLAGS   ?= -O2 -g
CPPFLAGS += -I. -D_GNU_SOURCE -DWEIR_VERSION_BUILD='"$(VERSION)"'
BASEFLAGS = -std=gnu11 $(WARN) -fPIC -fvisibility=hidden -fno-strict-aliasing -fno-omit-frame-pointer \
            -fno-semantic-interposition -ffp-contract=off -MMD -MP $(if $(SAN),-fsanitize=$(SAN) -fno-sanitize-recover=all)
LDSAN    := $(if $(SAN),-fsanitize=$(SAN))
SAN_OBJS  = $(if $(filter thread,$(SAN)),$(OBJ)/tests/tsan.o) # of weir
CUDAINC  := -isystem $(CUDA_HOME)/include

BIN := $(O)/bin
LIB := $(O)/lib
SIM := $(O)/lib/sim
OBJ := $(O)/obj
CUDA_STUBS := $(OBJ)/stubs# libcuda.so, libcudart.so: for linking alone

all: ## build everything: the weir command, its libraries, the software device, the examples

# objects: $(call objs,a.c b.S) -> $(OBJ)/a.o ...
objs = $(patsubst %,$(OBJ)/%.o,$(basename $(1)))
# pkg-config, asked when a recipe needs it: the packages may have come since this make began
pkg_cflags = $(shell pkg-config --cflags $(1) 2>/dev/null)
pkg_libs   = $(shell pkg-config --libs $(1) 2>/dev/null)

$(OBJ)/%.o: %.c | check-tools
	@mkdir -p $(@D)
	$(say) CC $<
	$(Q)$(CC) $(BASEFLAGS) $(CPPFLAGS) $(CFLAGS) $(EXTRA_$(firstword $(subst /, ,$<))) $(EXTRA_$<) -c $< -o $@

$(OBJ)/%.o: %.S | check-tools
	@mkdir -p $(@D)
	$(say) AS $<
	$(Q)$(CC) $(CPPFLAGS) -g -fPIC -MMD -MP -c $< -o $@

# Names of the driver's functions to link against, whatever the Toolkit brings.
$(CUDA_STUBS)/libcuda.so: tools/scripts/link-stubs.sh | check-tools
	$(say) STUBS $(CUDA_STUBS)
	$(Q)tools/scripts/link-stubs.sh "$(CC)" "$(CUDA_HOME)" "$(CUDA_LIB)" $(CUDA_STUBS)

# What a build needs and has not is one sentence, once, before the first compiler runs.
check-tools:
	@tools/scripts/deps.sh check "$(CC)" "$(CUDA_HOME)"

include $(wildcard core/rules.mk cuda/rules.mk interpose/rules.mk reports/rules.mk tools/rules.mk tests/rules.mk)

-include $(shell find $(OBJ) -name '*.d' 2>/dev/null)

deps: ## install the packages a build and its tests need, where we may (else name them); fetch a CUDA Toolkit where none is
	@tools/scripts/deps.sh install build "$(CUDA_HOME)" "$(TOOLKIT)"

deps-all: ## deps, and the packages lint, bundle and test-all need
	@tools/scripts/deps.sh install all "$(CUDA_HOME)" "$(TOOLKIT)"

clean: ## remove the output tree
	$(say) CLEAN $(O)
	$(Q)rm -rf $(O)

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(filter-out %.d,$(MAKEFILE_LIST))
	@sed -n '/^#   /s/^# *//p' Makefile | sed 's/^/  /'

.PHONY: all check-tools deps deps-all clean help
