# Everything that is built or fetched lands in .cache (tools) or bin (holdfast);
# only Go's own module and build caches are where Go keeps them.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

BIN := .cache/bin
ENVOY := $(BIN)/envoy
KUBE := $(BIN)/kube-apiserver $(BIN)/etcd
LINTER := $(BIN)/golangci-lint
OTLP := $(BIN)/otlp
JAEGER := $(BIN)/jaeger
AXE := .cache/axe/axe.min.js
HOLDFAST := bin/holdfast

VERSION = $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)

# Set on the command line: make test TESTFLAGS='-run TestRule -v'
TESTFLAGS ?=
FUZZTIME ?= 30s
DEMOFLAGS ?=
BENCHFLAGS ?=

# Nothing but the race detector needs a C compiler.
export CGO_ENABLED := 0
export GOLANGCI_LINT_CACHE := $(CURDIR)/.cache/golangci-lint

# Where the tests find the real parts. Not exported for all targets: a test may
# tell by these whether the parts are there.
test e2e soak faults bench bench-full bench-check: export HOLDFAST_TEST_ENVOY := $(CURDIR)/$(ENVOY)
test e2e soak faults bench bench-full bench-check: export HOLDFAST_TEST_K8S_BIN := $(CURDIR)/$(BIN)
test e2e jaeger-test: export HOLDFAST_TEST_OTLP := $(CURDIR)/$(OTLP)
jaeger-test: export HOLDFAST_TEST_ENVOY := $(CURDIR)/$(ENVOY)
jaeger-test: export HOLDFAST_TEST_JAEGER := $(CURDIR)/$(JAEGER)

# -count=1: the tests run binaries, of which Go's test cache knows nothing.
# -p 2: an API server, an Envoy and their load share the machine with each other.
GO_TEST = go test -count=1 -p 2 -timeout 45m

# $(call go-test-some,FLAGS,PACKAGE,REGEXP) runs the tests that match, and fails
# where none does, which go test alone would call a success.
define go-test-some
@tests=$$(go test $(1) -list '$(3)' $(2)); grep -q '^Test' <<<"$$tests" || { echo "no test matches $(3) in $(2)" >&2; exit 1; }
go test $(1) -count=1 -v -timeout 0 -run '$(3)' $(TESTFLAGS) $(2)
endef

.PHONY: help
help: ## Show this list
	@awk -F ':.*## ' '/^## / { print "\n" substr($$0, 4) } /^[a-z0-9-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

## Build and test

.PHONY: build
build: ## Build bin/holdfast
	go build -trimpath -ldflags '-s -w -X main.version=$(VERSION)' -o $(HOLDFAST) ./cmd/holdfast

.PHONY: test
test: $(ENVOY) $(KUBE) $(OTLP) ## Vet, then run all tests, with a real Envoy and a real kube-apiserver
	go vet ./...
	$(GO_TEST) $(TESTFLAGS) ./...

.PHONY: e2e
e2e: $(ENVOY) $(KUBE) $(OTLP) ## Run only the tests with real parts
	$(GO_TEST) $(TESTFLAGS) ./e2e/...

.PHONY: busy
busy: ## Measure how fast the admin listener answers at 30,000 hosts (needs a quiet machine)
	HOLDFAST_TEST_BUSY=1 go test -count=1 -v -timeout 20m -run '^TestAnswersAtOnce' ./admin

.PHONY: jaeger-test
jaeger-test: $(ENVOY) $(OTLP) $(JAEGER) ## Run the tests of traces, with a real Jaeger as well
	$(GO_TEST) -v $(TESTFLAGS) ./e2e/traced

.PHONY: check-alerts
check-alerts: ## Check the dashboard and the alert rules with promtool
	@command -v promtool >/dev/null || { [ "$$(id -u)" = 0 ] && apt-get update && apt-get install -y --no-install-recommends prometheus; } || { echo "make check-alerts: needs promtool (on Debian: apt-get install prometheus)" >&2; exit 1; }
	go test -count=1 -v ./deploy

.PHONY: page-test
page-test: $(ENVOY) $(AXE) ## Look at the status page in a real Chromium (Debian: apt-get install chromium)
	@command -v "$${HOLDFAST_TEST_CHROMIUM:-chromium}" >/dev/null || { echo "make page-test: needs Chromium (on Debian: apt-get install chromium), or its path in HOLDFAST_TEST_CHROMIUM" >&2; exit 1; }
	go vet -C e2e/page .
	HOLDFAST_TEST_ENVOY=$(CURDIR)/$(ENVOY) HOLDFAST_TEST_AXE=$(CURDIR)/$(AXE) HOLDFAST_PAGE_SHOTS=$(CURDIR)/.cache/page \
		go test -C e2e/page -count=1 -timeout 15m $(TESTFLAGS) .

.PHONY: race
race: ## Run the tests without real parts under the race detector (needs a C compiler)
	@command -v "$$(go env CC)" >/dev/null || { echo "make race: needs a C compiler (on Debian: apt-get install gcc libc6-dev)" >&2; exit 1; }
	CGO_ENABLED=1 go test -race -count=1 -timeout 45m $(TESTFLAGS) \
		$$(go list ./... | grep -vE '^[^/]+/[^/]+/[^/]+/(e2e|benchmarks)(/|$$)')

.PHONY: lint
lint: $(LINTER) ## Run the linters and check the formatting
	$(LINTER) run ./...

# SEED=S SEEDS=N are the first seed and how many, FOR=1h ends it in time, TRACE is
# what a failure printed. Each may be in the environment as well.
.PHONY: simulate
simulate: ## Run the deterministic simulation over many seeds
	$(call go-test-some,,./simulation,^TestSimulation$$)

.PHONY: mutants
mutants: ## Break the rule on purpose and see that the simulation finds each break
	@MUTANTS=1 go test -count=1 -v -timeout 0 -run '^TestMutants' $(TESTFLAGS) ./simulation | grep -vE '^(=== |--- PASS|PASS|ok)'

.PHONY: fuzz
fuzz: ## Run each fuzz test for FUZZTIME (30s)
	@targets=$$(go test -list '^Fuzz' ./... | awk '/^Fuzz/ { f[n++] = $$1 } /^ok/ { for (i = 0; i < n; i++) print $$2, f[i]; n = 0 }'); \
	[ -n "$$targets" ] || { echo "no fuzz tests" >&2; exit 1; }; \
	while read -r package target; do \
		echo "$$package $$target"; \
		go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 2s "$$package"; \
	done <<<"$$targets"

.PHONY: soak
soak: $(ENVOY) $(KUBE) ## Run the long tests with real parts
	$(call go-test-some,-tags soak,./e2e,^TestSoak)

# HOLDFAST_TEST_OUTAGE=10s makes it shorter.
.PHONY: faults
faults: export HOLDFAST_FAULTS_PAGE := $(CURDIR)/docs/faults.md
faults: export HOLDFAST_FAULTS_CODE = $(VERSION)
faults: $(ENVOY) $(KUBE) ## Bring about every fault under load and write docs/faults.md
	$(call go-test-some,-tags faults,./e2e,^TestFaults$$)

## Try and measure

.PHONY: demo
demo: build $(ENVOY) ## Watch a restart that loses nothing, with a real Envoy
	go run ./e2e/cmd/demo --envoy $(CURDIR)/$(ENVOY) --holdfast $(CURDIR)/$(HOLDFAST) $(DEMOFLAGS)

.PHONY: trace-demo
trace-demo: build $(ENVOY) $(JAEGER) ## Edit a host and find the trace of it in a Jaeger
	go run ./e2e/cmd/tracedemo --envoy $(CURDIR)/$(ENVOY) --holdfast $(CURDIR)/$(HOLDFAST) --jaeger $(CURDIR)/$(JAEGER) $(DEMOFLAGS)

.PHONY: trace-cost
trace-cost: build ## Measure what tracing costs, on and off
	go run ./benchmarks/cmd/tracecost --holdfast $(CURDIR)/$(HOLDFAST) $(BENCHFLAGS)

.PHONY: trace-picture
trace-picture: build $(ENVOY) $(JAEGER) ## Draw docs/images/trace-new-host.svg anew
	@mkdir -p docs/images
	go run ./e2e/cmd/tracedemo --envoy $(CURDIR)/$(ENVOY) --holdfast $(CURDIR)/$(HOLDFAST) --jaeger $(CURDIR)/$(JAEGER) --picture docs/images/trace-new-host.svg

.PHONY: bench
bench: build $(ENVOY) ## Run the quick benchmarks
	go run ./benchmarks/cmd/bench $(BENCHFLAGS)

.PHONY: bench-full
bench-full: build $(ENVOY) $(KUBE) ## Run all benchmarks at full size
	go run ./benchmarks/cmd/bench --full $(BENCHFLAGS)

.PHONY: bench-check
bench-check: build $(ENVOY) ## Compare the quick benchmarks with the recorded results
	go run ./benchmarks/cmd/bench --check $(BENCHFLAGS)

## Tools

.PHONY: tools
tools: $(ENVOY) $(KUBE) $(LINTER) $(OTLP) $(JAEGER) ## Build or fetch every tool ahead of need

.PHONY: crds
crds: ## Regenerate e2e/testdata/crds.yaml
	tools/crds/generate.sh e2e/testdata/crds.yaml

.PHONY: clean
clean: ## Remove all that was built, the tools too
	rm -rf bin .cache

$(AXE): tools/axe.sh | $(ENVOY)
	tools/axe.sh

$(ENVOY): tools/envoy.sh
	tools/envoy.sh

# $(call build-tool,MODULE,PACKAGE,LDFLAGS) builds a tool from its own module in
# tools/. It appears under its name only when it is whole: an interrupted build
# leaves nothing that looks finished, and the next one goes on from Go's cache.
# -buildvcs=false: a tool is what its own go.mod says, whatever is checked out.
define build-tool
@mkdir -p $(@D)
@echo "building $(@F): minutes the first time, seconds later"
@go -C tools/$(1) build -trimpath -buildvcs=false -ldflags '$(strip -s -w $(3))' -o $(CURDIR)/$@.$$$$ $(2) && mv $@.$$$$ $@
endef

# $(call version-of,TOOLS-MODULE,MODULE) is the pinned version, as v1.2.3.
version-of = $(shell go -C tools/$(1) list -m -f '{{.Version}}' $(2))

# Kubernetes' own build writes its version in like this. Without it /version
# says v0.0.0, over which clients that compare versions stumble.
KUBE_VERSION = $(call version-of,kube,k8s.io/kubernetes)
KUBE_NUMBERS = $(subst ., ,$(KUBE_VERSION:v%=%))
KUBE_STAMPS = gitVersion=$(KUBE_VERSION) gitMajor=$(word 1,$(KUBE_NUMBERS)) gitMinor=$(word 2,$(KUBE_NUMBERS))

$(BIN)/kube-apiserver: tools/kube/go.mod tools/kube/go.sum
	$(call build-tool,kube,k8s.io/kubernetes/cmd/kube-apiserver,$(KUBE_STAMPS:%=-X k8s.io/component-base/version.%))

$(BIN)/etcd: tools/kube/go.mod tools/kube/go.sum
	$(call build-tool,kube,go.etcd.io/etcd/server/v3)

$(LINTER): tools/lint/go.mod tools/lint/go.sum
	$(call build-tool,lint,github.com/golangci/golangci-lint/v2/cmd/golangci-lint,-X main.version=$(patsubst v%,%,$(call version-of,lint,github.com/golangci/golangci-lint/v2)))

$(OTLP): tools/otlp/go.mod tools/otlp/go.sum tools/otlp/main.go
	$(call build-tool,otlp,.)

$(JAEGER): tools/jaeger/go.mod tools/jaeger/go.sum
	$(call build-tool,jaeger,github.com/jaegertracing/jaeger/cmd/all-in-one)
