# The generated files are committed; only a change of hooks.tsv, of gen.py or of CUDA needs `make gen`.

# Assembly names functions of this part, which an optimiser of the whole program does not see.
EXTRA_interpose := $(CUDAINC) -fno-lto

gen: ## make the hooks again from interpose/table/hooks.tsv and CUDA's headers
	$(say) GEN interpose/table/hooks.gen.c
	$(Q)CC="$(CC)" python3 interpose/table/gen.py --cuda "$(CUDA_HOME)"

check-gen:
	$(Q)CC="$(CC)" python3 interpose/table/gen.py --cuda "$(CUDA_HOME)" --check

check-table: ## is each CUDA function wrapped, or known and not recorded for a reason
	$(say) TABLE "interpose/table"
	$(Q)CC="$(CC)" python3 interpose/table/gen.py --cuda "$(CUDA_HOME)" --table tests/interpose/data/cudart-13.0-lookups.tsv

.PHONY: gen check-gen check-table
