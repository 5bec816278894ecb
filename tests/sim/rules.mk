# tests/sim: the software device's driver, called directly. The suites find it by an rpath and are
# exported as a whole, for their kernels' host twins.

SIMT        := $(O)/tests/sim
SIMT_SUITES := test_init test_context test_memory test_copy test_stream test_event test_module \
               test_pool test_control test_vmm test_capture test_graph \
               test_graph_memory test_ipc test_texture test_condition
SIMT_ALL    := test_stress
# Clients of CUPTI, where the Toolkit has its headers; they link the stand-in.
SIMT_CUPTI  := $(if $(SIMCUPTI_INC),test_cupti test_cupti_faults)
TSAN_AGAIN  += tests/sim/test_cupti_faults

TESTS     += $(addprefix $(SIMT)/,$(SIMT_SUITES))
TESTS     += $(addprefix $(SIMT)/,$(SIMT_CUPTI))
TESTS_ALL += $(addprefix $(SIMT)/,$(SIMT_ALL))

$(foreach s,$(SIMT_SUITES) $(SIMT_ALL),$(eval EXTRA_tests/sim/$(s).c = $$(CUDAINC)))

$(addprefix $(SIMT)/,$(SIMT_SUITES) $(SIMT_ALL)): $(SIMT)/%: $(OBJ)/tests/sim/%.o $(SIM)/libcuda.so.1
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) $(LDSAN) -rdynamic -o $@ $< $(SIM)/libcuda.so.1 -Wl,-rpath,'$$ORIGIN/../../lib/sim' \
	  $(CHECK_LIBS) -lpthread -ldl -lm

$(foreach s,$(SIMT_CUPTI),$(eval EXTRA_tests/sim/$(s).c = $$(CUDAINC) $(if $(SIMCUPTI_INC),-isystem $(SIMCUPTI_INC))))

$(addprefix $(SIMT)/,$(SIMT_CUPTI)): $(SIMT)/%: $(OBJ)/tests/sim/%.o $(SIM)/libcuda.so.1 $(SIM)/libcupti.so.13
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) $(LDSAN) -rdynamic -o $@ $< $(SIM)/libcupti.so.13 $(SIM)/libcuda.so.1 -Wl,-rpath,'$$ORIGIN/../../lib/sim' \
	  $(CHECK_LIBS) -lpthread -ldl -lm
