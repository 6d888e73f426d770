# `make help` lists what there is to do. Variables: ARGS for demo and bench, RUN and PKG for the tests, FUZZTIME for fuzz.

SHELL := /bin/bash
.DEFAULT_GOAL := help

GO ?= go
PKG ?= ./...
RUN ?= .
FUZZTIME ?= 20s
LINT := $(GO) tool -modfile=$(CURDIR)/tools/go.mod golangci-lint
TEST_TIMEOUT ?= 13m

.PHONY: help
help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## Build bin/headgate
	$(GO) build -trimpath -o bin/headgate ./cmd/headgate

.PHONY: demo
demo: ## Run the demo: a shop, a crowd and the gate between them
	$(GO) run ./cmd/headgate demo $(ARGS)

.PHONY: deps
deps: ## Install the servers that the tests start (Debian, root); elsewhere say what is missing
	@scripts/install-test-deps.sh

# What tests a whole sale, in several processes and on real servers, runs without the race detector, and one package at a time: it waits for
# leases and deadlines, and under the detector SQLite is twenty times slower. So does the engine once more, which tries only some of its crashes under it.
SALE_TESTS := ./flashsale/engine ./flashsale/saletest/...
# Where something is missing that cannot be installed, tests skip, and this says so before and after; with CI=true it fails.
.PHONY: test
test: ## Install what is missing and run the whole suite with the race detector and real servers
	@missing=; scripts/install-test-deps.sh || { [[ "$$CI" == true ]] && exit 1; missing=1; }; \
	warn() { [[ -z "$$missing" ]] || echo "WARNING: servers are missing (see above); tests that need them are SKIPPED" >&2; }; \
	warn; code=0; $(GO) test -race -timeout $(TEST_TIMEOUT) -run '$(RUN)' $$($(GO) list $(PKG) | grep -v /flashsale/saletest/) || code=$$?; \
	if [[ '$(PKG)' == ./... ]]; then $(GO) test -p 1 -timeout $(TEST_TIMEOUT) -run '$(RUN)' $(SALE_TESTS) || code=$$?; (cd bench && $(GO) test -timeout 5m -run '$(RUN)' ./...) || code=$$?; fi; \
	warn; exit $$code

.PHONY: examples
examples: ## Run the tests of the policies in examples, the long ones too, and check the policies
	$(GO) build -o bin/headgate ./cmd/headgate
	bin/headgate check $$(git ls-files 'examples/**/policy.yaml')
	bin/headgate test $$(git ls-files 'examples/**/*.test')

.PHONY: test-quick
test-quick: ## Run the suite without the race detector, long tests shortened
	$(GO) test -short -timeout 5m -run '$(RUN)' $(PKG)

.PHONY: faults
faults: ## Run the fault tests in full and write their table into docs/reliability.md
	$(GO) test -count=1 -timeout 10m -parallel 3 -run Faults -v ./internal/faults -faults.full -faults.table ../../docs/reliability.md

.PHONY: flood
flood: ## Run the flood of new keys for its full minute
	HEADGATE_FAULTS_FULL=1 $(GO) test -count=1 -timeout 5m -run 'Faults/100,000' ./internal/faults

.PHONY: cover
cover: ## Measure coverage over all packages, into cover.out
	$(GO) test -timeout $(TEST_TIMEOUT) -coverpkg=./... -coverprofile=cover.out $(PKG)
	@$(GO) tool cover -func=cover.out | tail -1

.PHONY: fuzz
fuzz: ## Run every fuzz target for FUZZTIME
	@scripts/fuzz.sh $(FUZZTIME)

.PHONY: bench
bench: ## Compare with the peers and print the table (ARGS=-h for its flags)
	@cd bench && $(GO) run . $(ARGS)

.PHONY: generate
generate: ## Make the script for shops' pages from its source
	@$(GO) generate ./flashsale/salehttp/page

.PHONY: lint
lint: ## Run the linters of .golangci.yml over the module and over bench, and see that what is generated is up to date
	@code=0; $(GO) tool -modfile=$(CURDIR)/tools/go.mod esbuild --minify --charset=utf8 --target=es2020 flashsale/salehttp/page/page.js | cmp - flashsale/salehttp/page/page.min.js || { echo "page.min.js is not made of page.js: make generate"; code=1; }; \
	$(LINT) run ./... || code=$$?; cd bench && $(LINT) run ./... || code=$$?; exit $$code

.PHONY: fmt
fmt: ## Format all Go files
	@git ls-files -co --exclude-standard '*.go' | xargs gofmt -l -w

.PHONY: check-clean
check-clean: ## Fail if formatting or go.mod would change, or if there is anything uncommitted
	@out=$$(git ls-files '*.go' | xargs gofmt -l); [[ -z "$$out" ]] || { echo "not formatted (make fmt):"; echo "$$out"; exit 1; }
	@$(GO) mod tidy -diff || { echo "go.mod or go.sum is not tidy (go mod tidy)"; exit 1; }
	@out=$$(git status --porcelain); [[ -z "$$out" ]] || { echo "not committed:"; echo "$$out"; exit 1; }
