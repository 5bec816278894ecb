# tests/interpose: suites of the preload library; the loader's side is loader.mk.
include $(filter-out %/rules.mk,$(sort $(wildcard tests/interpose/*.mk)))
