# PyTorch's published CUDA build as a client of the software device: see README.md. Not part of any
# other target: it fetches 3 GB.

$(O)/peers/venv/client: tools/peers/setup.sh
	@mkdir -p $(@D)
	$(say) FETCH $(O)/peers/venv
	$(Q)$< $(O)/peers client
	@touch $@

test-peers: all $(O)/peers/venv/client ## PyTorch's published CUDA build on the software device, bare and under Weir (fetches 3 GB)
	@tests/peers/run.sh "$(O)" $(CASES)

.PHONY: test-peers
