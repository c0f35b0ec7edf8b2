# Turnstone. `make help` lists the targets.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help
.PHONY: help run build release test test-compile fuzz mutants nightly check format generate messages crash chaos upgrade replay bench compare bench-web soak bench-go lint openapi generated check-files go debian-run debian-test FORCE

BUILD_SHA := $(shell git rev-parse HEAD 2>/dev/null)
# The commit is stamped here because Go's own stamping fails in a clone that belongs to another user.
LDFLAGS   := -buildvcs=false -ldflags '-X main.buildSHA=$(BUILD_SHA)'
# The race detector also turns on checks of package unsafe, which nothing here uses. They take 5 % of the processor time of the tests.
export GOFLAGS += -gcflags=all=-d=checkptr=0
# Without the race detector in this package, a password is hashed in 0.06 s instead of 0.21 s.
export GOFLAGS += -gcflags=golang.org/x/crypto/argon2=-race=false
# Pictures are decoded by a child process with one goroutine. Without the race detector, the tests of it need less than half the time.
export GOFLAGS += -gcflags=image/...=-race=false -gcflags=golang.org/x/image/...=-race=false
# Each start of protoactor's remote sets the logger of gRPC, a global variable. A process of the service has one remote, but
# tests run several nodes in one process. Without the race detector in its two packages, only these accesses are not checked.
export GOFLAGS += -gcflags=google.golang.org/grpc/grpclog/...=-race=false
# Without the path of the work tree in them, compiled packages are the same in every clone, so a fresh clone compiles only
# what no other clone on this host computer has compiled.
export GOFLAGS += -trimpath
# By default a process with the race detector sleeps for a second before it exits, to observe goroutines that still run. A
# race is reported when it happens, and goleak finds goroutines that tests leave running.
export GORACE ?= atexit_sleep_ms=0
TESTS ?=
FUZZTIME ?= 1m
BENCH ?=
SOAK ?=

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: debian-run build ## run Turnstone for a first look: private servers, a scripted model, a seeded sign-in; Ctrl-C stops all of it
	@exec bin/turnstone dev

build: go web/dist/index.html ## build bin/turnstone, with the web app in it
	go build $(LDFLAGS) -o bin/turnstone ./cmd/turnstone

# The files depend on the commit and on the versions of Go and Node alone: paths and the settings of this host computer are left out.
RELEASES := linux-amd64 linux-arm64
release: go web/dist/index.html ## build the stripped binaries of a release and their checksums in bin/release
	rm -rf bin/release
	@for release in $(RELEASES); do \
		echo "bin/release/turnstone-$$release"; \
		env GOFLAGS= GOEXPERIMENT= GOFIPS140=off CGO_ENABLED=0 GOOS=$${release%-*} GOARCH=$${release#*-} GOAMD64=v1 GOARM64=v8.0 \
			go build -trimpath -buildvcs=false -ldflags '-s -w -X main.buildSHA=$(BUILD_SHA)' -o bin/release/turnstone-$$release ./cmd/turnstone; \
	done
	cd bin/release && sha256sum turnstone-* > SHA256SUMS

test: debian-test go bin/gotestsum web/dist/index.html ## run all tests, or those of TESTS=./package, on real servers, with the race detector
	mkdir -p tmp && rm -f tmp/notices
	bin/gotestsum --format pkgname --format-hide-empty-pkg --jsonfile tmp/tests.json --raw-command -- tools/test.sh $(TESTS) \
		| { failed=(); while IFS= read -r line; do \
			case $$line in \
			"=== FAIL: "*) failed+=("$${line#=== FAIL: }") ;; \
			*_test.go:[0-9]*) [[ $${#failed[@]} -eq 0 || $${#failed[-1]} -gt 1000 ]] || failed[-1]+=" | $${line:0:400}" ;; \
			"DONE "*) \
				if [[ -f tmp/notices ]]; then sed "s/^/notice: /" tmp/notices; fi; \
				for name in "$${failed[@]:0:20}"; do echo "failed: $$name"; done ;; \
			esac; \
			printf "%s\n" "$$line"; \
		done; }

test-compile: go web/dist/index.html # while the gate measures, which leaves most of the processors idle
	@nice -n 19 tools/test.sh --compile

fuzz: go ## run every fuzz target for FUZZTIME (1m), one after the other; findings are stored in testdata/fuzz
	@grep -rl --include='*_test.go' '^func Fuzz' . | xargs -n 1 dirname | sort -u | while read -r folder; do \
		grep -ho '^func Fuzz[A-Za-z]*' $$folder/*_test.go | cut -d ' ' -f 2 | while read -r target; do \
			echo "$$folder $$target"; \
			go test $$folder -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 1s -parallel 1; \
		done; \
	done

mutants: debian-test go ## seed bugs, one after the other, and check that a test finds each
	go test -race -count=1 -v -timeout 0 -run '^TestSeededBugsAreKilled$$' . -args -mutants=all

nightly: debian-test go web/dist/index.html ## run what takes too long for the gate (half a day): all benchmarks and seeded bugs, an upgrade, the long walk, fuzzing
	@tools/nightly.sh

# Two lanes: the linter of Go uses all processors, the programs for Node one each. The program is built before, because both
# need its packages.
check: bin/turnstone-race ## lint, and check the formatting and that generated files are up to date
	@$(MAKE) --no-print-directory --jobs 2 --output-sync=target lint check-files

# One after the other: generating rewrites files that the others read.
check-files:
	@for check in format openapi generated; do $(MAKE) --no-print-directory $$check; done

generate: bin/turnstone-race web/node_modules ## generate files from the code: reference pages, the OpenAPI document, schemas
	@made() { "$${@:2}" > "$$1.new" && mv "$$1.new" "$$1"; }; \
	made docs/configuration.md bin/turnstone-race config doc; \
	made protocol/openapi.json bin/turnstone-race openapi; \
	made protocol/events.schema.json bin/turnstone-race openapi --events
	go run -race ./protocol/typescript protocol/openapi.json web/src/generated
	go test -race ./protocol -update
	npm --prefix web run --silent generate
	npm --prefix web run --silent typecheck

messages: ## print every text of the app in its languages, side by side, into tmp/messages.md
	@mkdir -p tmp
	node web/messages.mjs > tmp/messages.md

CRASH_FOR ?= 30m
SEED ?= 0
crash: debian-test go ## run the crash tester for CRASH_FOR, and write its results to reliability.json
	go test -race -v ./tests/crash -run 'TestCrash$$' -count=1 -timeout 0 -args -crash.for=$(CRASH_FOR) -crash.seed=$(SEED) -crash.publish

CHAOS_FOR ?= 3m
CHAOS = go test -v ./tests/chaos -run 'TestCluster$$' -count=1 -timeout 0 -args -chaos.for=$(CHAOS_FOR) -chaos.seed=$(SEED) -chaos.program=$(abspath bin/turnstone)
chaos: debian-test build ## run a cluster of three nodes, and kill, pause, drain and replace its nodes for CHAOS_FOR
	$(CHAOS)

upgrade: debian-test build ## make chaos with a deploy from the program of an earlier commit and back: OLD=… (a commit)
	@test -n "$(OLD)" || { echo 'set OLD to the commit of the earlier program' >&2; exit 2; }
	rm -rf tmp/upgrade && mkdir -p tmp/upgrade && git archive $(OLD) | tar -x -C tmp/upgrade
	cp -R web/dist tmp/upgrade/web/
	cd tmp/upgrade && go build -buildvcs=false -o $(abspath bin/turnstone-old) ./cmd/turnstone
	$(CHAOS) -chaos.old=$(abspath bin/turnstone-old)

replay: debian-test go ## repeat the faults and choices of a failed run of the crash tester: SEED=…, or BUNDLE=… (its folder)
	go test -race -v ./tests/crash -run 'TestCrash$$' -count=1 -timeout 0 -args -crash.for=$(CRASH_FOR) -crash.seed=$(SEED) $(if $(BUNDLE),-crash.bundle=$(abspath $(BUNDLE)))

# bench and soak build the program that they measure, unless PROGRAM names one that exists.
PROGRAM ?=
bench: debian-test go $(PROGRAM) ## measure every goal of docs/benchmarks.md against its baseline (an hour); BENCH="--only P1 --quick" for a quick check
	$(call LOADTEST,tmp/bench)
	bin/loadtest bench --binary $(MEASURED) --folder tmp/bench $(BENCH)

MEASURED = $(or $(PROGRAM),$(@:%=tmp/%/turnstone))
define LOADTEST
mkdir -p $(1) && chmod 711 tmp $(1)
$(if $(PROGRAM),,go build $(LDFLAGS) -o $(MEASURED) ./cmd/turnstone)
go build -buildvcs=false -o bin/loadtest ./cmd/loadtest
endef

COMPARE ?=
compare: debian-test go web/dist/index.html ## compare the costs of this commit with those of an earlier one (10 minutes): BASE=… (a commit)
	@test -n "$(BASE)" || { echo 'set BASE to the commit to compare with' >&2; exit 2; }
	rm -rf tmp/compare && mkdir -p tmp/compare/source && chmod 711 tmp tmp/compare && git archive $(BASE) | tar -x -C tmp/compare/source
	cp -R web/dist tmp/compare/source/web/
	cd tmp/compare/source && go build -buildvcs=false -ldflags '-s -w' -o ../turnstone-base ./cmd/turnstone
	rm -rf tmp/compare/source
	go build -buildvcs=false -ldflags '-s -w' -o tmp/compare/turnstone-head ./cmd/turnstone
	go build -buildvcs=false -o bin/loadtest ./cmd/loadtest
	bin/loadtest compare --base tmp/compare/turnstone-base --head tmp/compare/turnstone-head $(COMPARE)

bench-web: debian-test build ## measure the web app's budgets in a real browser, and write them to docs/benchmarks.md
	cd web && npx vitest run --config vitest.bench.config.ts

SOAK_FOR ?= 1h
soak: debian-test go $(PROGRAM) ## run 60 % of the measured capacity for SOAK_FOR, with a fault every half minute, and write docs/soak.md
	$(call LOADTEST,tmp/soak)
	bin/loadtest soak --for $(SOAK_FOR) --binary $(MEASURED) --folder tmp/soak/servers --out docs/soak.md $(if $(filter-out 0,$(SEED)),--seed $(SEED)) $(SOAK)

bench-go: debian-test go ## run the Go benchmarks, on this host computer's own disk
	mkdir -p tmp && chmod 711 tmp
	TMPDIR=$(CURDIR)/tmp go test -run '^$$' -bench . -benchmem -timeout 30m ./...

lint: go bin/golangci-lint
	GOFLAGS="-race $(GOFLAGS)" bin/golangci-lint run --allow-parallel-runners # -race: the build variant that exists already
	cd tools && go mod verify >/dev/null

format: web/node_modules ## check the formatting of the web app; npm --prefix web run format repairs it
	@npm --prefix web run --silent format:check

openapi: tools/openapi/node_modules ## lint the OpenAPI document with Redocly and Spectral
	@mkdir -p tmp && for linter in redocly spectral; do \
		npm --prefix tools/openapi run --silent $$linter >tmp/openapi.log 2>&1 || { cat tmp/openapi.log >&2; exit 1; }; \
	done

tools/openapi/node_modules: tools/openapi/package.json tools/openapi/package-lock.json
	npm --prefix tools/openapi ci --silent --ignore-scripts
	@touch $@

# The working tree may have uncommitted changes. The check is that generating adds none.
generated:
	@state() { { git diff; git ls-files --others --exclude-standard -z | xargs -0 -r sha256sum; } | sha256sum; }; \
	before=$$(state); $(MAKE) --no-print-directory generate >/dev/null; \
	if [ "$$before" != "$$(state)" ]; then \
		git --no-pager diff --stat; echo "Generated files were not up to date: run make generate and commit its output." >&2; exit 1; \
	fi

# Checks, generators and the load tests of the gate run this build variant. Like the programs of the tests, it waits longer for
# its dependencies, so that a slow host computer does not make it refuse requests.
bin/turnstone-race: FORCE | go
	go build -race -buildvcs=false -ldflags=-X=turnstone/protocol/timelimit.factor=8 -o $@ ./cmd/turnstone

web/node_modules: web/package.json web/package-lock.json
	@command -v npm >/dev/null || { echo "Missing: Node 20 with npm (Debian: nodejs, npm); put it on the PATH and run make again." >&2; exit 1; }
	npm --prefix web ci --silent
	@touch $@

# The web app that the binary embeds.
web/dist/index.html: web/node_modules web/index.html web/vite.config.ts $(shell find web/src -type f -not -name '*.test.*' 2>/dev/null)
	npm --prefix web run --silent build

bin/gotestsum: tools/go.mod tools/go.sum | go
	go build -C tools -o ../$@ gotest.tools/gotestsum

bin/golangci-lint: tools/go.mod tools/go.sum | go
	go build -C tools -o ../$@ github.com/golangci/golangci-lint/v2/cmd/golangci-lint

go:
	@command -v go >/dev/null || { echo "Missing: Go 1.26 (https://go.dev/dl); put it on the PATH and run make again." >&2; exit 1; }

# package=file or command that proves that it is installed
POSTGRES := postgresql-15=/usr/lib/postgresql/1[5-9]/bin/postgres
REDIS    := redis-server=redis-server
POPPLER  := poppler-utils=pdftotext
CMAPS    := poppler-data=/usr/share/poppler/cMap

debian-run:
	@tools/debian.sh '$(POSTGRES)' '$(REDIS)' '$(POPPLER)' '$(CMAPS)'

debian-test: # the race detector needs a C compiler
	@tools/debian.sh '$(POSTGRES)' '$(REDIS)' '$(POPPLER)' '$(CMAPS)' gcc=gcc libc6-dev=/usr/include/stdlib.h git=git chromium-headless-shell=chromium-headless-shell curl=curl openssl=openssl clamav-daemon=/usr/sbin/clamd tesseract-ocr=tesseract libheif-examples=heif-enc

FORCE:
