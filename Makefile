# SPDX-License-Identifier: Apache-2.0
# Every target installs missing packages (scripts/install-deps), configures, builds and runs.
# CMakePresets.json has the details.
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

JOBS ?= $(shell nproc)
NVCC := $(or $(shell command -v nvcc 2>/dev/null),$(wildcard /usr/local/cuda/bin/nvcc))
PRESET ?= $(if $(NVCC),cuda,cpu)

comma := ,
say = @printf '\n== %s\n' $(1)
configure = cmake --preset $(1)
build = cmake --build --preset $(1) --parallel $(JOBS)
ctest = ctest --preset $(1) --parallel $(JOBS)

ifeq ($(PRESET),cuda)
notice = @echo 'quarry: preset cuda (nvcc: $(NVCC)): both backends are built'
else
notice = @echo 'quarry: preset $(PRESET): the CPU backend only$(if $(NVCC),, (no nvcc found))'
endif

.PHONY: help demo test sanitize asan tsan fuzz gpu-test bench docs format tidy clean

help:  ## List the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 12
	@echo
	@echo 'PRESET=cpu or PRESET=cuda selects the backends of demo, test and bench'
	@echo '(now: $(PRESET)); JOBS=N the number of parallel jobs (now: $(JOBS)).'

demo: tool  ## Build the quarry command and show it at work
	$(call say,'build/bin/quarry demo')
	@build/bin/quarry demo
	$(call say,'A region: saved by one process$(comma) loaded by another with its pointers intact')
	@build/bin/quarry region snapshot save build/demo.region
	@build/bin/quarry region snapshot load build/demo.region
	$(call say,'A cluster: Barnes-Hut on 16 workers and a scheduler$(comma) simulated in one process')
	@build/bin/quarry cluster barnes-hut --simulate 17 --bodies 4000 --steps 2
	$(call say,'A small benchmark$(comma) and a page with it and with the recorded run of an H200')
	@rm -f build/demo.jsonl
	@build/bin/quarry bench --quick --workloads alloc,mixed --out build/demo.jsonl; status=$$?; \
	build/bin/quarry report build/demo.jsonl bench/results/2026-11-16-h200-public/public.jsonl \
	  --title 'Quarry: a small benchmark' -o build/report.html && \
	echo 'Open in a browser: $(CURDIR)/build/report.html' && exit $$status

test: notice  ## Build everything and run all tests
	$(call configure,$(PRESET))
	$(call build,$(PRESET))
	$(call ctest,$(PRESET))

sanitize:  ## Run the tests under ASan + UBSan, then under TSan
	@$(MAKE) asan
	@$(MAKE) tsan

asan tsan: dependencies
	$(call say,'preset $@')
	$(call configure,$@)
	$(call build,$@)
	$(call ctest,$@)

fuzz:  ## Run the libFuzzer programs, each for SECONDS (default 600)
	@scripts/install-deps build tool test cluster fuzz
	$(call say,'preset fuzz')
	$(call configure,fuzz)
	$(call build,fuzz)
	@scripts/fuzz --seconds $(or $(SECONDS),600) --jobs $(JOBS) $(TARGETS)

gpu-test:  ## Build and run the tests that need a GPU
	@test -n '$(NVCC)' || \
	  { echo 'gpu-test: nvcc not found, on PATH or in /usr/local/cuda/bin' >&2; exit 2; }
	@cmake/run-on-gpu >/dev/null || { echo 'gpu-test: no NVIDIA GPU found on this host' >&2; exit 2; }
	@scripts/install-deps gpu
	$(call configure,cuda) -DQUARRY_BUILD_TOOLS=OFF -DQUARRY_BUILD_BENCH=OFF -DQUARRY_STATIC_CHECKS=OFF
	$(call build,cuda) --target gpu_tests
	$(call ctest,cuda) -L gpu

bench: notice  ## Build the benchmarks and run them on the backends of this host
	$(call configure,$(PRESET))
	$(call build,$(PRESET)) --target benchmarks
	@for program in build/bin/bench/*; do \
	  test -x "$$program" || continue; \
	  printf '\n== %s\n' "$$program"; "$$program" $(BENCH_ARGS) || exit 1; \
	done
	@cmake/run-on-gpu >/dev/null || \
	  { echo 'bench: no GPU on this host; the GPU benchmarks are skipped'; exit 0; }; \
	for program in build/bin/gpu_bench/*; do \
	  test -x "$$program" || continue; \
	  printf '\n== %s\n' "$$program"; "$$program" $(BENCH_ARGS) || exit 1; \
	done

docs: tool  ## Draw the recorded measurements into build/docs, and update docs/results.md
	@mkdir -p build/docs
	@build/bin/quarry report $$(ls -r bench/results/*/*.jsonl*) --title 'Results: an NVIDIA H200' \
	  -o build/docs/report.html --markdown build/docs/results.md --figures build/docs/figures \
	  --summary docs/results.md

format:  ## Format every C++ and CUDA source with clang-format
	@scripts/install-deps format
	@scripts/format

tidy: notice  ## Check the sources with clang-tidy
	@scripts/install-deps tidy
	$(call configure,$(PRESET))
	$(call build,$(PRESET)) --target quarry_commit
	@scripts/tidy --jobs $(JOBS)

clean:  ## Remove the build folders
	rm -rf build build-asan build-tsan build-fuzz

# The presets build everything; demo and docs need the quarry command only.
.PHONY: tool
tool:
	@scripts/install-deps build tool cluster
	$(notice)
	$(call configure,$(PRESET)) \
	  -DQUARRY_BUILD_TESTS=OFF -DQUARRY_BUILD_BENCH=OFF -DQUARRY_BUILD_EXAMPLES=OFF
	$(call build,$(PRESET)) --target quarry_tool

.PHONY: notice dependencies
dependencies:
	@scripts/install-deps

notice: dependencies
	$(notice)
