SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: help build release release-check release-twice audit run test test-ci test-long race race-all model shown kills check format vet portable lint tidy bench-check load-check postgres-check foreign foreign-set iceberg iceberg-check collector-check cluster-check cluster-story bench fuzz kill soak world world-bugs world-reached mutants every-place

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-13s  %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# One build cache serves the program, the tests and a release: all are compiled with the same flags. The race
# detector and DuckDB alone need cgo.
export CGO_ENABLED := 0
export GOFLAGS := $(strip $(filter-out -trimpath,$(GOFLAGS)) -trimpath)
race race-all kill load-check postgres-check foreign foreign-set bench: export CGO_ENABLED := 1

build: ## build bin/leadetl
	@.ci/quietly "building bin/leadetl: the first time takes some minutes" \
		go build -ldflags '-s -w' -o bin/ ./cmd/leadetl

PLATFORMS ?= linux/amd64,linux/arm64,darwin/amd64,darwin/arm64
PROGRAMS ?= leadetl,leadetl-iceberg
DIST ?= dist

release: ## make the files of a release in dist; VERSION=v0.9.0 in place of the tag, PLATFORMS=linux/amd64, MINISIGN_KEY=file to sign
	@go run -C deploy/release . -dist "$(abspath $(DIST))" -platforms "$(PLATFORMS)" -programs "$(PROGRAMS)" -version "$(VERSION)"

# The sources of the sample's reference data, one for each kind.
kinds := people companies ip-ranges searches visits
files := $(foreach kind,$(kinds),--$(kind) out/run/sample/directory/$(kind).csv)

# The sample runs keep their progress out of your home folder.
run: export XDG_STATE_HOME := $(CURDIR)/out/run/state
run: build ## run six operations on the sample lists, into out/run
	@rm -rf out/run && mkdir -p out/run && bin/leadetl sample out/run/sample > out/run/sample.txt
	bin/leadetl run email_to_hem --in out/run/sample/emails.csv --out out/run/email_to_hem
	@bin/leadetl directory import --directory out/run/directory $(files) > out/run/directory.txt
	@$(call one-line,network_to_hem,profiles)
	@$(call one-line,network_to_phone,profiles)
	@$(call one-line,enrichment,profiles)
	@$(call one-line,ip_to_company,ips)
	@$(call one-line,deanonymization,ips)

# $(call one-line,OPERATION,LIST) runs an operation and prints its totals on one line.
one-line = bin/leadetl run $(1) --in out/run/sample/$(2).csv --directory out/run/directory --out out/run/$(1) | \
	awk '$$1 == "rows" {rows = $$2} $$1 == "matched" {matched = $$2} \
		$$1 == "dataset" {printf "%-18s%s of %s rows matched, in %s\n", "$(1)", matched, rows, $$2}'

# Vet is part of check. TESTFLAGS=-shuffle=on runs every test anew, in random order, as CI does.
test: ## run the tests that one waits for; what has not changed since is not run again
	@.ci/quietly "testing: the first time takes some minutes" go test -short -vet=off -timeout 20m $(TESTFLAGS) ./...
	@echo "all tests pass"

# The number of a suite is how many seconds it may take on two cores with empty caches.
test-ci: ## after make test: a few kills, the commands of the documents, the race detector where goroutines start, DuckDB, packages, workers
	@.ci/suites kills=90 every-place=60 shown=60 race=360 foreign-set=120 load-check=90 release-check=240 cluster-story=240

LONG_KILLS ?= 30

test-long: ## run every test there is: the race detector for all, LONG_KILLS kills (30), what compiles large modules
	@KILLS=$(LONG_KILLS) .ci/suites race-all=0 model=0 load-check=0 postgres-check=0 foreign=0 iceberg-check=0 collector-check=0 release-twice=0 kill=0

# The packages whose code starts goroutines. The commands, which are long to link, are for race-all, as are the workers
# with Temporal, tests that compare values, and simulations of some 10,000 calls.
concurrent = $$(go list -f '{{$$d := .Dir}}{{range .GoFiles}}{{$$d}}/{{.}}{{"\n"}}{{end}}' ./internal/... ./pipeline/... ./resolution/... ./sinks/... ./sources/... | \
	xargs grep -lE '^\s+go [a-z]|\.Go\(|errgroup|sourcegraph/conc|AfterFunc\(' | xargs -n1 dirname | grep -v '/pipeline/cluster$$' | sort -u)
race-all-only = UnreadColumns|PeopleAsColumns|DamagedFiles|ChangedInput|OtherJobIsRefused|PlanExpects|LostCalls|LoneRefusals|ModelOf|NoLimit|LimitJitter|TellNoRate

# The seeds of a day are its own. BASE=20261128 repeats them, and BASE=0 has those that the bugs are looked for with.
BASE ?= $(shell date -u +%Y%m%d)
SEEDS ?= $(if $(MINUTES),999999999,20000)

world: ## let the code that pays, whole runs, and the service, live SEEDS simulated worlds (20000) each, of some lives, on all cores; MINUTES=60 ends all in an hour, BASE=20261128 repeats a day
	LEADETL_WORLD_BASE=$(BASE) LEADETL_WORLD_SEEDS=$(SEEDS) LEADETL_WORLD_SECONDS=$(if $(MINUTES),$$(($(MINUTES) * 60 / $(words $(worlds))))) \
		go test -p 1 -count=1 -v -timeout 0 -run 'TestWorld$$' $(worlds)

world-bugs: ## plant bugs in all, one after the other, and let make world find each
	LEADETL_WORLD_BUGS=all go test -p 1 -count=1 -v -timeout 0 -run TestPlantedBugs $(worlds)

REACHED ?= 4000

world-reached: ## count the statements and rare branches that REACHED worlds (4000) reach of the code that pays, and of whole runs
	LEADETL_WORLD_REACHED=$(REACHED) go test -p 1 -count=1 -v -timeout 0 -run TestReached ./pipeline/world ./pipeline/world/runs

worlds = ./pipeline/world ./pipeline/world/runs ./resolution/service/world

MUTANTS ?= 200

mutants: ## change the code that pays in MUTANTS small ways (200), which its tests or world have to find; a path tries all of its file
	LEADETL_WORLD_MUTANTS=$(MUTANTS) GOGC=off nice -n 15 go test -count=1 -v -parallel 2 -timeout 0 -run 'TestMutants$$' ./pipeline/world

race:
	go test -race -short -vet=off -shuffle=on -timeout 10m -skip '$(race-all-only)' $(concurrent)

race-all:
	go test -race -vet=off -shuffle=on -timeout 60m ./...

# The model is one goroutine, and too slow with the race detector.
model:
	go test -run 'TestModel$$' ./pipeline/answers -rapid.checks=40

# Small runs of each kind, killed once at each write, list and rename.
every-place:
	go test -count=1 -vet=off -timeout 10m -run 'TestEveryPlace$$' ./pipeline/world/runs

# make run, and what the documents show.
shown:
	go test -count=1 -vet=off -timeout 5m -run TestShownCommands ./cmd/leadetl

kills:
	go test -count=1 -vet=off -timeout 10m -run 'TestProgram|Killed' ./pipeline ./pipeline/answers ./resolution/service/sqlite ./cmd/leadetl/stories/{serve,remote,resolvers,s3}

check: format vet lint tidy bench-check ## check all but the tests: gofmt, vet, staticcheck, go.mod, the benchmarks

format:
	@unformatted=$$(gofmt -l .); [ -z "$$unformatted" ] || { echo "not formatted with gofmt: $$unformatted"; exit 1; }

vet: portable
	go vet ./...

# What asks the system for something is built for macOS too. All of the program takes minutes.
portable:
	GOOS=darwin go build ./internal/{appendlog,keyed,directio,fileaccess,filelock,glob}

lint:
	staticcheck=$$(go tool -n staticcheck); "$$staticcheck" ./...

tidy:
	go mod tidy -diff

bench-check:
	cd bench && go vet . ./bare ./fixed ./floor ./plainloop && go test . ./floor

# $(call in-module,FOLDER,COMMANDS) runs commands in a module of its own, if its modules
# can be had; DuckDB needs a C++ compiler besides.
in-module = cd $(1) && if ! go list -test -deps ./... > /dev/null 2>&1; then echo "NOT RUN $@: its modules are not available"; \
	else $(2); fi
with-duckdb = if ! command -v g++ > /dev/null; then echo "NOT RUN $@: there is no g++"; else $(in-module); fi

# -count=1 because these tests run the program, which the test cache does not see.
load-check: ## load what every operation writes into DuckDB, with the statements of leadetl schema
	@$(call with-duckdb,internal/testkit/duckdbtest,go vet . && go test -count=1 . && cd ../../../bench && go vet ./duckdb)

# Debian keeps the server out of PATH.
postgres-check: export PATH := $(PATH):$(shell ls -rd /usr/lib/postgresql/*/bin 2> /dev/null | paste -sd:)
postgres-check: ## load what every operation writes into PostgreSQL, with the statements of leadetl schema, and compare it with what DuckDB reads
	@if ! command -v initdb > /dev/null || ! command -v psql > /dev/null; then echo "NOT RUN $@: there is no PostgreSQL server; Debian has it as postgresql"; \
	else $(call with-duckdb,internal/testkit/duckdbtest,go vet . && go test -count=1 -run TestPostgres .); fi

iceberg: ## build bin/leadetl-iceberg, which publishes datasets in Iceberg tables
	cd cmd/leadetl-iceberg && go build -o ../../bin/ .

# leadetl-iceberg has many modules below it: some minutes to compile.
iceberg-check: ## test leadetl-iceberg
	@$(call in-module,cmd/leadetl-iceberg,go vet . && go test -count=1 .)

# So has a collector of OpenTelemetry.
collector-check: ## send the metrics and the span of a run to an OpenTelemetry collector
	@$(call in-module,internal/testkit/collectortest,go vet . && go test -count=1 .)

release-check: ## make the release of this machine, install each package in an empty folder and run it
	@$(call in-module,deploy/release,go vet . && go test -count=1 -v .)

release-twice: ## make the release in two folders and compare the checksums
	@$(call in-module,deploy/release,LEADETL_PLATFORMS="$(PLATFORMS)" go test -count=1 -v -timeout 2h -run TestTwice .)

# $(call on-temporal,TESTS): the Temporal server takes six minutes of a processor to compile.
on-temporal = if server=$$(go -C internal/testkit/testservers/temporal tool -n temporal); \
	then LEADETL_TEMPORAL="$$server" go test -v -count=1 -timeout 2h -run '$(1)' ./pipeline/cluster ./cmd/leadetl/stories/cluster; \
	else echo "NOT RUN $@: the Temporal server is not available"; fi

cluster-check: ## test runs on many machines against a real Temporal server
	@$(call on-temporal,TestServer|TestCluster)

cluster-story:
	@$(call on-temporal,TestServer|TestClusterTakeover/^killed$$)

# AUDIT_DB=file:///folder is another database than that of the Go project. The Go that compiles is checked, too.
audit: ## look for known vulnerabilities in what a release has and is made by, with govulncheck
	@check=$$(go -C deploy/audit tool -n govulncheck); found=0; \
	for module in . cmd/leadetl-iceberg deploy/release; do \
		if report=$$("$$check" $(if $(AUDIT_DB),-db $(AUDIT_DB)) -C $$module ./... 2>&1); then echo "ok $$module: no known vulnerability is called"; \
		elif grep -q 'fetching vulnerabilities' <<< "$$report"; then echo "NOT RUN audit: the database of vulnerabilities cannot be reached"; exit 0; \
		else printf '%s: %s\n' "$$module" "$$report"; found=1; fi; \
	done; exit $$found

# LEADETL_FOREIGN=folder:folder adds folders of Parquet files.
foreign: ## read Parquet files of other programs and compare every value with DuckDB's; docs/tests.md has the last result
	@$(call with-duckdb,internal/testkit/foreigntest,go vet . && go test -count=1 -v .)

foreign-set:
	@$(call with-duckdb,internal/testkit/foreigntest,go test -count=1 -run 'TestForeign/others' .)

SIZES ?= 1000000
PEOPLE ?= 500000

bench: ## measure speed and memory and write docs/benchmarks.md; BENCH=full has larger lists and shows growth, ROWS=500000 is a quick try that writes nothing, SIZES=10000,3000000 are lists of look-ups, PEOPLE=50000000 is a large directory
	cd bench && go run . $(if $(filter full,$(BENCH)),-full) $(if $(ROWS),-rows $(ROWS)) -sizes $(SIZES) -people $(PEOPLE)

KILLS ?= 200

kill: ## kill runs, services and imports at random moments, KILLS times (200); docs/tests.md has the last results
	LEADETL_KILLS=$(KILLS) go test -race -count=1 -v -run 'TestProgram' ./pipeline
	LEADETL_KILLS=$(KILLS) go test -race -count=1 -v -timeout 2h -run 'TestServeKilled|TestBackupKilled|TestImportKilled' ./cmd/leadetl/stories/serve
	LEADETL_KILLS=$(KILLS) go test -race -count=1 -v -timeout 3h -run 'TestRemote(Killed|Budgets)' ./cmd/leadetl/stories/remote
	LEADETL_KILLS=$(KILLS) go test -race -count=1 -v -timeout 6h -run 'TestOrdersKilled' ./cmd/leadetl/stories/resolvers
	LEADETL_KILLS=$(KILLS) go test -race -count=1 -v -timeout 1h -run 'TestS3Killed' ./cmd/leadetl/stories/s3
	LEADETL_KILLS=$(KILLS) go test -race -count=1 -v -timeout 2h -run 'TestKill$$|TestJobsKilled' ./resolution/service/sqlite
	LEADETL_KILLS=$(KILLS) go test -race -count=1 -v -timeout 2h -run 'TestKilled' ./pipeline/answers
	LEADETL_KILLS=$(KILLS) $(MAKE) cluster-check
	go test -count=1 -v -timeout 1h -run 'TestLogModel|TestBothKeepTheSame' ./pipeline/objectstate -rapid.checks=$(KILLS)

SOAK ?= 20m

soak: ## replace the directory every 10 s under a service and runs, for SOAK (20m); make test does so for seconds
	LEADETL_SOAK=$(SOAK) go test -count=1 -v -timeout 3h -run 'TestDirectorySoak$$' ./cmd/leadetl/stories/serve

FUZZTIME ?= 20s

fuzz: ## run every fuzz test for FUZZTIME (20s)
	@grep -r --include='*_test.go' -o '^func Fuzz[A-Za-z0-9_]*' . | while IFS=: read -r file target; do \
		echo "$${file%/*} $${target#func }"; \
		go test -run '^$$' -fuzz "^$${target#func }$$" -fuzztime $(FUZZTIME) "$${file%/*}"; done
