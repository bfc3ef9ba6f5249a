SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: help build run test test-ci test-long race-all race kills check format vet portable lint tidy bench-check load-check foreign iceberg iceberg-check cluster-check cluster-story bench fuzz kill soak

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-13s  %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## build bin/leadetl
	CGO_ENABLED=0 go build -o bin/ ./cmd/leadetl

# The files of the sample directory, one for each kind of data.
kinds := people companies ip-ranges searches visits
files := $(foreach kind,$(kinds),--$(kind) testdata/directory/$(kind).csv)

# The sample runs keep their progress out of your home folder.
run: export XDG_STATE_HOME := $(CURDIR)/out/run/state
run: build ## run six operations on the lists of testdata, into out/run
	bin/leadetl run email_to_hem --in testdata/emails.csv --out out/run/email_to_hem --overwrite
	@bin/leadetl directory import --directory out/run/directory $(files) > out/run/directory.txt
	@$(call one-line,network_to_hem,profiles)
	@$(call one-line,network_to_phone,profiles)
	@$(call one-line,enrichment,profiles)
	@$(call one-line,ip_to_company,ips)
	@$(call one-line,deanonymization,ips)

# $(call one-line,OPERATION,LIST) runs an operation and prints its totals on one line.
one-line = bin/leadetl run $(1) --in testdata/$(2).csv --directory out/run/directory --out out/run/$(1) --overwrite | \
	awk '$$1 == "rows" {rows = $$2} $$1 == "matched" {matched = $$2} \
		$$1 == "dataset" {printf "%-18s%s of %s rows matched, in %s\n", "$(1)", matched, rows, $$2}'

test: ## run all tests in random order, without the race detector
	go test -vet=off -shuffle=on -timeout 10m ./... # check vets

# What test-ci runs, and the seconds that each needs on a machine with empty caches.
ci-suites := race:240 kills:100 cluster-story:240 foreign:200 iceberg-check:200

# UNTIL is the time, in seconds since 1970, after which no suite is under way. A suite
# that begins and does not end is a failure.
test-ci: ## run the race detector where goroutines start, some kills, foreign files and a cluster, as far as UNTIL allows
	@for suite in $(ci-suites); do \
		name=$${suite%:*}; needs=$${suite#*:}; left=$$(($${UNTIL:-9999999999} - $$(date +%s))); \
		if [ $$left -lt $$needs ]; then echo "NOT RUN $$name: it may need $$needs s, and $$left s are left"; continue; fi; \
		$(MAKE) --no-print-directory $$name; \
	done

test-long: race-all foreign iceberg-check ## run everything, for hours: before an issue is closed
	$(MAKE) kill

race-all:
	go test -race -vet=off -shuffle=on -timeout 40m ./...

# The packages that start goroutines. The commands do so in the packages that they wire.
race = $(shell grep -rlE --include='*.go' --exclude='*_test.go' '\bgo func|\.Go\b' internal pipeline resolution sinks sources | xargs -n1 dirname | grep -v 'test$$' | sort -u | sed 's,^,./,')

race:
	go test -race -short -vet=off -timeout 10m $(race)

kills:
	LEADETL_KILLS=3 go test -race -count=1 -vet=off -timeout 5m -run 'TestRemoteKilled$$|TestServeKilled' ./cmd/leadetl

check: format vet lint tidy bench-check load-check ## run what CI runs first: gofmt, vet, staticcheck, go.mod, modules of their own

format:
	@unformatted=$$(gofmt -l .); [ -z "$$unformatted" ] || { echo "not formatted with gofmt: $$unformatted"; exit 1; }

vet: portable
	go vet ./...

# What asks the system for something is built for macOS too. All of the program takes minutes.
portable:
	GOOS=darwin CGO_ENABLED=0 go build ./internal/{appendlog,columnfile,directio,fileaccess,filelock,glob}

lint:
	staticcheck=$$(go tool -n staticcheck); "$$staticcheck" ./...

tidy:
	go mod tidy -diff

# bench compares with DuckDB, which is C++ and large. If it is not available, the
# rest of bench is checked without it.
bench-check:
	cd bench && go vet . ./bare ./fixed ./hashonly ./plainloop && go test . ./hashonly
	@cd bench && if command -v g++ > /dev/null && go list -deps ./duckdb > /dev/null 2>&1; \
		then go vet ./duckdb; else echo "NOT RUN vet of bench/duckdb: no g++, or its modules are not available"; fi

# Loads what every operation writes into DuckDB, with the statements of leadetl schema.
# -count=1 because the test builds the program, which the test cache does not see.
load-check:
	@cd internal/duckdbtest && if command -v g++ > /dev/null && go list -test -deps . > /dev/null 2>&1; \
		then go vet . && go test -count=1 .; else echo "NOT RUN load-check: no g++, or its modules are not available"; fi

iceberg: ## build bin/leadetl-iceberg, which publishes datasets in Iceberg tables
	cd cmd/leadetl-iceberg && CGO_ENABLED=0 go build -o ../../bin/ .

# leadetl-iceberg is a module of its own, with many others below it: some minutes
# to compile.
iceberg-check: ## test leadetl-iceberg
	@cd cmd/leadetl-iceberg && if go list -test -deps . > /dev/null 2>&1; \
		then go vet . && go test -count=1 .; else echo "NOT RUN iceberg-check: its modules are not available"; fi

# The Temporal server is a module of its own: six minutes of a processor to compile.
with-temporal = server=$$(go -C internal/testservers/temporal tool -n temporal) || { echo "NOT RUN $@: the Temporal server is not available"; exit 0; }; LEADETL_TEMPORAL="$$server"

cluster-check: ## test runs on many machines against a real Temporal server
	@$(with-temporal) go test -v -count=1 -timeout 2h -run 'TestServer|TestCluster' ./pipeline/cluster ./cmd/leadetl

cluster-story:
	@$(with-temporal) go test -count=1 -timeout 5m -run 'TestClusterTryScript' ./cmd/leadetl

# LEADETL_FOREIGN=folder:folder adds folders of Parquet files.
foreign: ## read Parquet files of other programs and compare every value with DuckDB's; docs/guarantees.md has the last result
	@cd internal/foreigntest && if command -v g++ > /dev/null && go list -test -deps . > /dev/null 2>&1; \
		then go vet . && go test -count=1 -v .; else echo "NOT RUN foreign: no g++, or its modules are not available"; fi

ROWS ?= 10000000
PEOPLE ?= 0

bench: ## measure speed and memory and write docs/benchmarks.md; ROWS=500000 is a quick try that writes nothing, PEOPLE=50000000 is a large directory
	cd bench && go run . -rows $(ROWS) -people $(PEOPLE)

KILLS ?= 200

kill: ## kill runs, services and imports at random moments, KILLS times (200); docs/guarantees.md has the last results
	LEADETL_KILLS=$(KILLS) go test -race -count=1 -v -run 'TestProgram' ./pipeline
	LEADETL_KILLS=$(KILLS) go test -race -count=1 -v -timeout 2h -run 'TestServeKilled|TestBackupKilled|TestImportKilled' ./cmd/leadetl
	LEADETL_KILLS=$(KILLS) go test -race -count=1 -v -timeout 3h -run 'TestRemote(Killed|Budgets)' ./cmd/leadetl
	LEADETL_KILLS=$(KILLS) go test -race -count=1 -v -timeout 1h -run 'TestS3Killed' ./cmd/leadetl
	LEADETL_KILLS=$(KILLS) go test -race -count=1 -v -timeout 2h -run 'TestKill$$|TestJobsKilled' ./resolution/service/sqlite
	LEADETL_KILLS=$(KILLS) go test -race -count=1 -v -timeout 2h -run 'TestKilled' ./pipeline/answers
	LEADETL_KILLS=$(KILLS) $(MAKE) cluster-check
	go test -count=1 -v -timeout 1h -run 'TestLogModel|TestBothKeepTheSame' ./pipeline/objectstate -rapid.checks=$(KILLS)

SOAK ?= 20m

soak: ## replace the directory every 10 s under a service and runs, for SOAK (20m); make test does so for seconds
	LEADETL_SOAK=$(SOAK) go test -count=1 -v -timeout 3h -run 'TestDirectorySoak$$' ./cmd/leadetl

FUZZTIME ?= 20s

fuzz: ## run every fuzz test for FUZZTIME (20s)
	@grep -r --include='*_test.go' -o '^func Fuzz[A-Za-z0-9_]*' . | while IFS=: read -r file target; do \
		echo "$${file%/*} $${target#func }"; \
		go test -run '^$$' -fuzz "^$${target#func }$$" -fuzztime $(FUZZTIME) "$${file%/*}"; done
