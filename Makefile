# Every change is proved by `make check`.

# A pipe fails when its first command does.
SHELL := bash
.SHELLFLAGS := -eo pipefail -c

GO ?= go
FUZZ ?= 4
LINT = $(GO) tool -modfile=tools/go.mod golangci-lint
# Inputs are counted: the end of a duration is now and then a failure in Go 1.26
# (go.dev/issue/75804). Those that the cache has from before count as well.
FUZZING = $(GO) test -run '^$$' -fuzz $(1) -fuzzminimizetime 10x -fuzztime $(FUZZ)$(2)x
RACY = ./engine/... ./schedule/... ./tpg/... ./internal/metamorphic/... ./job/... ./workloads/auction/... ./reconfig/... ./cluster/...

.PHONY: help
help: ## list the targets
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

.PHONY: check
check: fmt lint floors test cluster invariants race sim fuzz ## everything that proves a change

.PHONY: fmt
fmt: ## fail if a file is not formatted
	@bad=$$(gofmt -l $$(git ls-files '*.go')); [ -z "$$bad" ] || { echo "not formatted: $$bad"; exit 1; }

.PHONY: lint
lint: ## vet and the linters of .golangci.yml (built on first use, which takes minutes)
	$(GO) vet ./...
	$(LINT) run ./...

.PHONY: floors
floors: ## import directions, banned uses, size guides
	$(GO) test -count=1 ./internal/arch

.PHONY: test
test: ## all tests, plain
	$(GO) test ./...

.PHONY: invariants
invariants: ## all tests with internal checks compiled in
	$(GO) test -short -tags invariants ./...

.PHONY: race
race: ## the concurrent packages under the race detector
	$(GO) test -short -race $(RACY)

.PHONY: sim
sim: ## seeded interleavings and crashes, each from its numbers
	$(GO) test -count=1 -run 'TestSeededInterleavings|TestEveryConfiguration' ./engine ./internal/metamorphic
	HEDDLE_SEEDS=2500 $(GO) test -count=1 -v ./internal/sim

.PHONY: fuzz
fuzz: ## each decoder, FUZZ times some seconds
	$(call FUZZING,FuzzDecode,00000) ./internal/codec
	$(call FUZZING,FuzzReader,0000) ./trace
	$(call FUZZING,FuzzReader,00000) ./storage/wal
	$(call FUZZING,FuzzReader,0000) ./source
	$(call FUZZING,FuzzLog,0000) ./engine
	$(call FUZZING,FuzzRead,00000) ./internal/image
	$(call FUZZING,FuzzLoad,0000) ./storage/window
	$(call FUZZING,FuzzMessage,00000) ./cluster

.PHONY: data
data: ## the tests on the full data sets; they say so when the data are absent
	$(GO) test -count=1 -v -run 'Full' ./workloads/... | grep -E '^(---|ok|FAIL|panic)|data'

.PHONY: long
long: ## campaigns of many minutes
	HEDDLE_SEEDS=20000 $(GO) test -count=1 -timeout 2h -run 'TestSeededInterleavings|TestEveryConfiguration' ./engine ./internal/metamorphic
	HEDDLE_SEEDS=5000 $(GO) test -count=1 -timeout 2h -run 'TestCrash|FailsOnce' ./storage/wal
	HEDDLE_SEEDS=2000 $(GO) test -count=1 -timeout 2h -run 'TestCrash|TestKilled' ./engine
	HEDDLE_SEEDS=50000 $(GO) test -count=1 -timeout 2h ./internal/sim
	HEDDLE_SEEDS=40 $(GO) test -count=1 -timeout 2h -run TestCrash ./job
	HEDDLE_SEEDS=50000 $(GO) test -count=1 -timeout 2h -tags invariants -run TestLikeOneAfterTheOther ./cluster
	HEDDLE_SEEDS=200 $(GO) test -count=1 -timeout 2h -tags invariants -run TestStores ./storage/window
	$(MAKE) fuzz FUZZ=200

.PHONY: bench
bench: ## the engine's experiment, small scale
	$(GO) run ./cmd/heddle bench engine --scale small

.PHONY: cluster
cluster: ## worker processes, a module of its own: its tests
	cd cmd/heddle-cluster && $(GO) vet ./... && $(GO) test ./...

.PHONY: peers
peers: ## the comparison with other systems, a module of its own: its tests
	cd bench/peers && $(GO) vet ./... && $(GO) test ./...

.PHONY: bench-go
bench-go: ## micro-benchmarks
	$(GO) test -run '^$$' -bench . -benchmem ./...
