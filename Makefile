# Heliograph: build, look, test. `make help` lists the targets.
#
# Everything made goes to build/ and .venv/ and is gone after `make clean`. build, demo and test begin with
# deploy/bootstrap, which installs what is missing (Debian packages need root) and is instant when nothing is.

SHELL := /bin/sh
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory
.NOTPARALLEL:

PY := .venv/bin/python
BOOTSTRAP := deploy/bootstrap
JOBS ?= $(shell nproc)
PYTEST ?=
STAGES := $(or $(PYTHON),python3) $(BOOTSTRAP)/stages.py
INSTALL := 'installation=sh $(BOOTSTRAP)/bootstrap.sh'
NATIVE := 'build of the C programs=sh $(BOOTSTRAP)/native.sh build/release'
TEST_C := 'C tests, release=sh $(BOOTSTRAP)/ctest.sh build/release' \
	'C tests, sanitizers=sh $(BOOTSTRAP)/ctest.sh build/asan address,undefined'
TEST_FUZZ := 'fuzzing=sh $(BOOTSTRAP)/fuzz.sh 5'
TEST_PY := 'Python tests=sh $(BOOTSTRAP)/pytest.sh $(PYTEST)'
BENCH = $(if $(SECONDS),--seconds $(SECONDS)) $(if $(ROWS),--rows '$(ROWS)')

.PHONY: help
help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{ printf "  make %-17s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: bootstrap
bootstrap:
	@sh $(BOOTSTRAP)/bootstrap.sh

.PHONY: build
build: bootstrap ## install what is missing, build the engine and install heliograph into .venv
	@echo "ready: .venv/bin/heliograph"

.PHONY: demo
demo: bootstrap ## the whole house on this machine, until Ctrl-C (DEMO_SECONDS=30 DEMO_HEADLESS=1: unattended; DEMO_SLOW=enforce: a slow consumer's story; DEMO_STORE=1: a message store; DEMO_BUILDS=2: a build that is slower)
	@exec $(PY) deploy/demo/demo.py

.PHONY: test
test: ## every test: C (release and sanitizers), fuzzing for a moment, then Python
	@$(STAGES) $(INSTALL) $(TEST_C) $(TEST_FUZZ) $(TEST_PY)

.PHONY: test-c
test-c: ## the C tests, release build and address+undefined sanitizer build
	@$(STAGES) $(TEST_C)

.PHONY: test-fuzz
test-fuzz: ## each fuzz target for 5 seconds
	@$(STAGES) $(INSTALL) $(TEST_FUZZ)

.PHONY: test-tsan
test-tsan: ## the C tests under the thread sanitizer
	@$(STAGES) 'C tests, thread sanitizer=sh $(BOOTSTRAP)/ctest.sh build/tsan thread'

.PHONY: fuzz
fuzz: ## each fuzz target for FUZZ_SECONDS (60), then 10 million packets on both receive paths and 10 million messages on both send paths; TARGETS="fuzz_pgm" chooses
	@$(STAGES) $(INSTALL) 'fuzzing=sh $(BOOTSTRAP)/fuzz.sh $(or $(FUZZ_SECONDS),60) $(TARGETS)' $(NATIVE) \
		'fast path and general path=build/release/sim_fast_path --seeds 500' \
		'the same of sending=build/release/sim_send_fast_path --seeds 500'

.PHONY: test-py
test-py: bootstrap ## the Python tests (PYTEST="-k name" chooses)
	@$(STAGES) $(NATIVE)
	@sh $(BOOTSTRAP)/pytest.sh $(PYTEST)

.PHONY: test-quick
test-quick: bootstrap ## the tests that the changes since main are most likely to break, in less than three minutes
	@$(PY) $(BOOTSTRAP)/quick.py

.PHONY: wheel
wheel: bootstrap ## a wheel and an sdist in build/dist; tries the wheel with the newest and the oldest allowed packages
	@sh $(BOOTSTRAP)/wheel.sh

.PHONY: lint
lint: ## ruff, mypy --strict, clang-format, generated files fresh, shell syntax
	@sh $(BOOTSTRAP)/system.sh
	@sh $(BOOTSTRAP)/environment.sh
	@sh $(BOOTSTRAP)/lint.sh

.PHONY: fmt
fmt: ## format Python and C, write the generated files
	@sh $(BOOTSTRAP)/system.sh
	@sh $(BOOTSTRAP)/environment.sh
	@sh $(BOOTSTRAP)/format.sh

.PHONY: bench
bench: bootstrap ## speed against bare sockets, the rows that tell most, as ratios of neighbouring runs
	@$(STAGES) $(NATIVE)
	@$(PY) -m tests.bench.run --programs build/release/bench --quick --pairs $(or $(PAIRS),3) $(BENCH)

.PHONY: bench-peers
bench-peers: bootstrap ## every row, libzmq and pyzmq too; refreshes tests/bench/RESULTS.md (PAIRS=5 SECONDS=0.7 ROWS=words)
	@$(STAGES) $(NATIVE)
	@$(PY) -m tests.bench.run --programs build/release/bench --pairs $(or $(PAIRS),5) $(BENCH)

.PHONY: instructions
instructions: bootstrap ## instructions per message at each level of detail, by callgrind; refreshes RESULTS.md
	@$(STAGES) $(NATIVE)
	@$(PY) -m tests.bench.instructions --programs build/release/bench

.PHONY: monitor-cost
monitor-cost: bootstrap ## what monitoring takes: CPU time of a sample by size of the fleet; and of the engine's throughput
	@$(STAGES) $(NATIVE)
	@$(PY) -m tests.bench.monitor_cost
	@$(PY) -m tests.bench.undisturbed --programs build/release/bench --pairs $(or $(PAIRS),3)

.PHONY: bench-scrape
bench-scrape: bootstrap ## CPU time and memory of a scraped exporter; refreshes RESULTS.md (LARGE=1: 10,000 receiver-topics too)
	@$(PY) -m tests.bench.bench_scrape $(if $(LARGE),--large)

.PHONY: bench-live
bench-live: bootstrap ## CPU time and memory of the live page, size of its updates, script time of a browser; refreshes RESULTS.md
	@$(PY) -m tests.bench.live

.PHONY: soak-live
soak-live: bootstrap ## memory of the live page and of a browser over time; refreshes RESULTS.md (SECONDS=1800)
	@$(PY) -m tests.bench.live_soak --seconds $(or $(SECONDS),1800)

.PHONY: bench-history
bench-history: bootstrap ## speed and memory of the latency history beside pyarrow and DuckDB; refreshes RESULTS.md (INTERVALS=50000 SPARK=1000000 PAIRS=3)
	@$(PY) -m tests.bench.history --rows $(or $(INTERVALS),50000) --spark-rows $(or $(SPARK),1000000) --pairs $(or $(PAIRS),3)

.PHONY: bench-store
bench-store: bootstrap ## speed of message stores: kept, served, stable, started again; refreshes RESULTS.md (PAIRS=3; SECTION=store or stores)
	@$(PY) -m tests.bench.store --pairs $(or $(PAIRS),3) --section $(or $(SECTION),all)

.PHONY: calibrate-history
calibrate-history: bootstrap ## how often studies of the history are wrong, and what they find: EQUAL=1000 equal pairs, seeded
	@OPENBLAS_NUM_THREADS=1 $(PY) -m tests.history.calibration --pairs $(or $(EQUAL),1000)

.PHONY: soak
soak: bootstrap ## 70 % load for SECONDS=600: nothing may grow (a run that long refreshes RESULTS.md)
	@$(STAGES) $(NATIVE)
	@$(PY) -m tests.bench.soak --programs build/release/bench --seconds $(or $(SECONDS),600)

.PHONY: soak-store
soak-store: bootstrap ## stores under kills and joins: KILLS=1000 subscribers, VICTIMS=200 and QUORUM=200 stores, SEAMS=1000 joiners (SECONDS=N: what fits)
	@$(PY) -m tests.soak.run --kills $(or $(KILLS),1000) --victims $(or $(VICTIMS),200) \
		--quorum $(or $(QUORUM),200) --seams $(or $(SEAMS),1000) $(if $(SECONDS),--seconds $(SECONDS)) $(if $(SEED),--seed $(SEED))

.PHONY: lab
lab: bootstrap ## every simulated scenario of the congestion lab with SEEDS (100) seeds that nothing was tuned on, from FIRST (1000)
	@$(PY) -m heliograph.monitor.cli lab run all --seeds $(or $(SEEDS),100) --first $(or $(FIRST),1000)

.PHONY: faults
faults: bootstrap ## kill, stop and restart all, FAULTS=200 times each (ROLLUPS=20; MINUTES=N: what fits); refreshes RESULTS.md
	@$(PY) -m tests.faults.run --faults $(or $(FAULTS),200) --rollups $(or $(ROLLUPS),20) $(if $(SEED),--seed $(SEED)) \
		$(if $(MINUTES),--minutes $(MINUTES))

.PHONY: live-fire
live-fire: bootstrap ## real faults in a real fleet, through Prometheus and Alertmanager to a webhook (FAULTS="losses stores": these groups); refreshes LIVE_FIRE.md
	@LIVE_FIRE="$(or $(FAULTS),all)" $(PY) -m pytest -q -s tests/e2e -k livefire

.PHONY: pictures
pictures: bootstrap ## pictures of every live page, light, dark and at the width of a phone; refreshes deploy/images/live*.png
	@$(PY) -m tests.dashboards.pictures deploy/images

.PHONY: picture-study
picture-study: bootstrap ## picture of a study's page; refreshes deploy/images/study.png
	@$(PY) -m tests.history.picture

.PHONY: clean
clean: ## remove all that was made
	rm -rf build .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
