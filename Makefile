# A thin face on CMake and scripts/. `make help` lists what there is.
.POSIX:
.SUFFIXES:

PREFIX = /usr/local
SWARM = 10m
OPERATORS = 10m
TORTURE = 200
DESTDIR =
BUILD = build/release

build:
	@scripts/deps build
	@scripts/build release

help:
	@echo 'make             build the libraries and the command (build/release)'
	@echo 'make web         the simulator as a page: build/web/stagger-sim.html'
	@echo 'make wheel       the Python package: build/python/stagger-*.whl'
	@echo 'make demo        see what it does'
	@echo 'make test        run the tests'
	@echo 'make check       all that CI runs: sanitizers, fuzzing, mutants ...'
	@echo 'make check-long  the same with many more seeds, inputs and mutants'
	@echo 'make swarm       random worlds of the hub in virtual time, for SWARM=10m'
	@echo 'make operators   random hubs under an operator'"'"'s acts, for OPERATORS=10m'
	@echo 'make torture     the real hub, killed in all ways, TORTURE=200 times'
	@echo 'make bench       measure the library'
	@echo 'make bench-web   measure the simulator in WebAssembly (with node)'
	@echo 'make bench-adapters measure a retry, beside other libraries'
	@echo 'make bench-hub   measure the hub, beside wrk'
	@echo 'make bench-store measure its store, SQLite and PostgreSQL'
	@echo 'make bench-kafka measure it on Kafka, beside what one writes without it'
	@echo 'make fuzz        fuzz for FUZZ_SECONDS=60 a target'
	@echo 'make coverage    list the branches of core and flow that no test takes'
	@echo 'make figures     draw the figures of docs/jitter.md anew'
	@echo 'make format      format the sources'
	@echo 'make install     into PREFIX=/usr/local, below DESTDIR'
	@echo 'make uninstall   remove what the last make install has written'
	@echo 'make deb         Debian packages, in build/deb'
	@echo 'make clean       remove build/'

web:
	@scripts/deps web
	@scripts/build release stagger_web
	@mkdir -p build/web
	@cp build/release/web/stagger-sim.html build/web/
	@echo build/web/stagger-sim.html

wheel:
	@scripts/deps wheel
	@scripts/wheel

demo: build
	@scripts/demo build/release/stagger

test:
	@scripts/deps test
	@scripts/check test

check:
	@scripts/deps all
	@scripts/check

check-long:
	@scripts/deps all
	@scripts/check --long

# The seed is another one each time.
swarm: build
	@build/release/stagger sim delivery --swarm 100000000 --for $(SWARM) \
	    --seed $$(date +%s) --shrink build/swarm.events

# The seed is another one each time.
operators:
	@scripts/deps test
	@scripts/operators --jobs 2 --for $(OPERATORS) --shrink 5m --keep build/operators

torture:
	@scripts/deps test
	@scripts/build release
	@STAGGER=$$PWD/build/release/stagger \
	    STAGGER_DISK=$$PWD/build/release/tests/hub/blackbox_disk \
	    python3 tests/hub/blackbox.py $(TORTURE)

bench: build
	@build/release/bench/core
	@test ! -e build/release/bench/curl || build/release/bench/curl
	@test ! -e build/release/bench/sign || build/release/bench/sign
	@test ! -e build/release/bench/filter || build/release/bench/filter
	@build/release/bench/sim build/release/stagger

bench-adapters: build wheel
	@python3 bench/adapters.py build/release

bench-hub: build
	@scripts/deps bench
	@python3 bench/hub.py build/release/stagger

bench-web: build
	@python3 bench/web.py build/release

bench-store: build
	@scripts/deps all
	@python3 bench/store.py build/release/bench/store

bench-kafka: build
	@scripts/deps all
	@python3 bench/kafka.py build/release/stagger

fuzz:
	@scripts/deps all
	@scripts/fuzz

coverage:
	@scripts/deps test
	@scripts/coverage

figures: build
	@python3 scripts/figures build/release/stagger

format:
	@scripts/deps all
	@scripts/format

install: build
	@DESTDIR='$(DESTDIR)' cmake --install build/release --prefix '$(PREFIX)'

uninstall:
	@[ -s $(BUILD)/install_manifest.txt ] || \
	    { echo 'nothing was installed from here' >&2; exit 1; }
	@while IFS= read -r file || [ -n "$$file" ]; do \
	    rm -f -- "$(DESTDIR)$$file"; \
	done <$(BUILD)/install_manifest.txt

deb:
	@scripts/deps deb
	@scripts/deb

clean:
	rm -rf build

.PHONY: build help web wheel demo test check check-long swarm operators torture bench fuzz coverage format
.PHONY: figures bench-adapters bench-hub bench-store bench-web bench-kafka install uninstall deb clean
