# OrderGrid. `make` or `make help` lists what there is; each target is one command of a Go program or a small script below hack/.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules

# What a person may set on the command line.
CLUSTER  ?=
DEMO     ?= full
SUITE    ?= all
SEEDS    ?= 200
FROM     ?=
SEED     ?=
WORLD    ?=
MODEL    ?=
PKG      ?= ./...
FUZZTIME ?= 60s
CASES    ?= .
ROUNDS   ?= 3
PEERS    ?=
BENCHFLAGS ?=
TARGET   ?= dev
SCENARIO ?= kill-primary
REPEAT   ?= 0
RATE     ?= 3000
ALERT    ?=
GRIDS    ?= 10,100,1000
PARTS    ?=
MESSAGES ?=
PYTHON2  ?= python2.7

export CLUSTER DEMO
GO        := go
VERSION   := $(shell git describe --tags --always --abbrev=12 --dirty 2>/dev/null || echo dev)
GCFLAGS   := all=-dwarf=false
LDFLAGS   := -s -w -X github.com/ordergrid/ordergrid/internal/version.Version=$(VERSION)
CLUSTERCTL := $(GO) run ./e2e/cluster/cmd/cluster
MYPY      := 2.4.1
PROGRAMS  := grid-node grid-link grid-sink order-gateway order-probe operator kubectl-ordergrid

##@ Start here

.PHONY: help
help: ## Show this page
	@awk 'BEGIN {FS = ":.*## "; printf "usage: make <target> [VARIABLE=value]\n"} \
	  /^##@/ {printf "\n%s\n", substr($$0, 5)} \
	  /^[a-z0-9-]+:.*## / {printf "  %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: demo
demo: ## The whole thing: build, two-server table, real Kubernetes, Helm, OrderGrid, probe, tables (DEMO=quick stops after the first table)
	@CGO_ENABLED=0 GOFLAGS="$${GOFLAGS:-} -trimpath -gcflags=$(GCFLAGS)" $(GO) run ./hack/demo --mode $(DEMO) # one set of flags: what is compiled once serves all steps

.PHONY: demo-watch
demo-watch: ## A real Prometheus of the demo's cluster, with rules and alerts, at 127.0.0.1:9090 until Ctrl-C (the first time it is built: 2 minutes)
	@$(GO) run ./dashboards/cmd/watch --kubeconfig "$$($(CLUSTERCTL) kubeconfig)"

.PHONY: demo-down
demo-down: cluster-down ## Take down what the demo put up

.PHONY: test
test: ## Everything that gates: vet, unit, race, real API server, chart, real grid processes (minutes; the first time it builds Kubernetes too)
	@hack/test.sh $(PKG)

.PHONY: downstream-up
downstream-up: ## What sinks write to, on this machine until Ctrl-C: Kafka; addresses are printed (PARTS="kafka" for some of them)
	@$(GO) run ./e2e/downstream/cmd/downstream $(PARTS)

##@ Build

.PHONY: build
build: ## Build the programs into bin/
	@mkdir -p bin
	@for p in $(PROGRAMS); do echo "build bin/$$p"; CGO_ENABLED=0 $(GO) build -trimpath -gcflags '$(GCFLAGS)' -ldflags '$(LDFLAGS)' -o bin/$$p ./cmd/$$p; done

.PHONY: images
images: ## Build the container images as archives below out/images (no Docker needed), each with its bill of materials
	@$(CLUSTERCTL) image build --all --out out/images

.PHONY: images-load
images-load: images ## Put all images on the nodes of the cluster of `make demo` or `make cluster-up`
	@$(CLUSTERCTL) load out/images/*.tar

.PHONY: sbom
sbom: images ## What is in each image, as CycloneDX JSON out/images/NAME.cdx.json, and in short
	@$(CLUSTERCTL) image contents out/images/*.cdx.json

.PHONY: reproducible
reproducible: ## Build all images twice, from two clones of this commit with nothing compiled before, and compare every byte
	@ORDERGRID_REPRODUCE=all $(GO) test -count 1 -timeout 60m -v -run TestTwoClonesGiveTheSameImages ./e2e/cluster/image/

.PHONY: generate
generate: ## Regenerate deepcopy code, CRDs, dashboards, the protocol's vectors, the chart's copies and the bundle for OLM
	@$(GO) run ./hack/generate
	@$(GO) run ./dashboards/cmd/generate
	@$(GO) run ./hack/vectors
	@$(GO) run ./hack/coverage
	@$(GO) run ./hack/reproduction
	@$(MAKE) --no-print-directory bundle

.PHONY: bundle
bundle: ## Regenerate the bundle for the Operator Lifecycle Manager (charts/olm, PROJECT) and validate it
	@cd hack/olm && $(GO) run . --helm "$$(cd ../.. && $(CLUSTERCTL) binaries --dir)/helm"

.PHONY: verify
verify: ## Fail if generated files, formatting or go.mod have drifted
	@hack/verify.sh

.PHONY: kubeconform
kubeconform: ## Every manifest there is, and the chart with every switch, against the schemas of Kubernetes and of all CRDs
	@$(CLUSTERCTL) binaries
	@ORDERGRID_REQUIRE_ENVTEST=1 $(GO) test -count 1 -v -run TestKubeconform ./charts/

.PHONY: lint
lint: ## golangci-lint, the API conventions check, govulncheck where its database can be reached
	@hack/lint.sh

##@ Prove

.PHONY: fuzz
fuzz: ## Fuzz every parser for FUZZTIME each
	@hack/fuzz.sh $(FUZZTIME)

.PHONY: sim
sim: ## Whole partitions in simulated worlds where everything fails, every invariant checked after every step (SEEDS=n: half of them new each time; SEEDS=n FROM=s|new: that range; SEED=s: one, with its trace; WORLD=w: of that kind of world)
	@hack/sim.sh "$(SEEDS)" "$(FROM)" "$(SEED)" "$(WORLD)"

.PHONY: sim-mutants
sim-mutants: ## The proof that the simulator sees: deliberately broken variants of the protocol, each of which it has to catch
	@$(GO) run -tags mutants ./grid-node/sim/cmd/sim mutants

.PHONY: model
model: ## Every interleaving of the abstract protocol within bounds (MODEL="-members 3 -orders 2" for others; docs/model.md)
	@$(GO) build -o bin/model ./grid-node/model/cmd/model
	@bin/model $(MODEL)

.PHONY: negative-control
negative-control: ## Negative control of the probe: a grid configured to lose acknowledged orders; the ledger must count exactly those
	@$(GO) test -count 1 -v -run TestNegativeControl ./probe/cli/

.PHONY: model-mutants
model-mutants: ## The same with every wrong protocol on the list: which invariant catches it, in how many steps
	@$(GO) build -o bin/model ./grid-node/model/cmd/model
	@bin/model -mutants $(MODEL)

.PHONY: bench
bench: ## What an order costs beside floors and peers, interleaved: table, out/bench/bench.json (CASES=regexp ROUNDS=n BENCHFLAGS=...; CASES=clients is bench-clients; PEERS=all or hazelcast,coherence,geode,ignite installs those by Maven: one round, out/bench/peers.md; PEERS=query asks questions about a million orders beside PostgreSQL, Redis, Hazelcast and Coherence: out/bench/query.md, BENCHFLAGS='--orders 20000' for fewer)
ifeq ($(CASES),clients)
	@$(GO) run ./clients/bench $(BENCHFLAGS)
else ifeq ($(strip $(PEERS)),query)
	@$(GO) run ./hack/bench query $(BENCHFLAGS)
else ifeq ($(strip $(PEERS)),)
	@$(GO) run ./hack/bench --cases '$(CASES)' --rounds $(ROUNDS) $(BENCHFLAGS)
else
	@$(GO) run ./hack/bench --peers '$(PEERS)' --rounds $(if $(filter file,$(origin ROUNDS)),1,$(ROUNDS)) $(if $(filter-out .,$(CASES)),--cases '$(CASES)') $(BENCHFLAGS)
endif

.PHONY: bench-growth
bench-growth: ## How the cost grows with orders held, clients, partitions and payload: tables, SVG plots in out/bench, a verdict (CASES=^growth/held, ROUNDS, BENCHFLAGS)
	@$(GO) run ./hack/bench growth --rounds $(if $(filter file,$(origin ROUNDS)),1,$(ROUNDS)) $(if $(filter-out .,$(CASES)),--cases '$(CASES)') $(BENCHFLAGS)

.PHONY: profile
profile: ## CPU, allocation and block profiles of primary, backup and client in one case, into out/profile (CASES=name)
	@$(GO) run ./hack/bench profile $(if $(filter-out .,$(CASES)),--cases '$(CASES)') $(BENCHFLAGS)

.PHONY: pgo
pgo: ## Profile primary and backup under pipelined load into cmd/grid-node/default.pgo, which go build then uses
	@$(GO) run ./hack/bench profile --duration 20s --warmup 2s --out out/pgo $(BENCHFLAGS) >/dev/null
	@$(GO) tool pprof -proto -output cmd/grid-node/default.pgo out/pgo/primary.cpu.pprof out/pgo/backup.cpu.pprof

.PHONY: garbage
garbage: ## Heap and pauses of real nodes that hold 10 million orders, and what collections do to latency (CASES='^growth/held-1m-rate-6000$$' for less memory)
	@$(GO) run ./hack/bench garbage $(if $(filter-out .,$(CASES)),--cases '$(CASES)') $(BENCHFLAGS)

.PHONY: bench-move
bench-move: ## A partition of 10 million orders moves from one pair of nodes to another under 6,000 orders/s: rate, latency before, during and after (CASES='^growth/held-1m-rate-6000$$' for less memory)
	@$(GO) run ./hack/bench move $(if $(filter-out .,$(CASES)),--cases '$(CASES)') $(BENCHFLAGS)

.PHONY: bench-outage
bench-outage: ## How long no order is answered when a primary is killed: a grid that stores, and one that matches, in turns
	@$(GO) run ./hack/bench outage $(if $(filter-out .,$(CASES)),--cases '$(CASES)') $(BENCHFLAGS)

.PHONY: bench-idle
bench-idle: ## CPU of a pair of nodes with 2 partitions and of one with 64 beside it while nothing is asked of them (BENCHFLAGS='--rounds 5')
	@$(GO) run ./hack/bench idle $(BENCHFLAGS)

.PHONY: bench-clients
bench-clients: ## Clients of other languages beside Go's, interleaved: orders/s, p50, p99 and ratios (BENCHFLAGS='--rounds 9')
	@$(GO) run ./clients/bench $(BENCHFLAGS)

.PHONY: microbench
microbench: ## Go benchmarks of parser, store, replica and client (CASES=regexp ROUNDS=n)
	@$(GO) test -run '^$$' -bench '$(CASES)' -benchmem -count $(ROUNDS) ./grid-node/... ./client/... ./probe/...

.PHONY: dashboards-check
dashboards-check: ## Every query of every dashboard against a real Prometheus that scraped a real run with a failover; list and pictures in out/dashboards
	@mkdir -p bin
	@for p in operator order-probe; do CGO_ENABLED=0 $(GO) build -trimpath -gcflags '$(GCFLAGS)' -ldflags '$(LDFLAGS)' -o bin/$$p ./cmd/$$p; done
	@$(GO) run ./e2e/cluster/cmd/cluster binaries
	@$(GO) build -o bin/dashboards-check ./dashboards/cmd/check
	@bin/dashboards-check

.PHONY: robustness
robustness: ## Break a grid under load and judge what that did (TARGET=dev|cluster SCENARIO=name|all REPEAT=n RATE=orders/s); see docs/robustness.md
	@hack/robustness.sh "$(TARGET)" "$(SCENARIO)" "$(REPEAT)" "$(RATE)"

.PHONY: hostile
hostile: ## What 1,000 idle clients and 1,000 connections of strangers (idle, half handshakes, forged tokens), at another grid beside it and at its own, do to the latency of a client with a right to be there, and what clients that read nothing, forged frames between nodes, certificates with another's name, streams, calls of functions, Maps over orders, orders that functions fail on, changes by SQL, values published to regions, books read order by order, logons with wrong tokens and mass cancels do; ROUNDS=10
	@ORDERGRID_HOSTILE_ROUNDS=$(if $(filter file,$(origin ROUNDS)),10,$(ROUNDS)) $(GO) test -count 1 -v -timeout 30m ./e2e/hostile

.PHONY: skew
skew: ## A rolling update, its rollback and kills in the middle, under load, between nodes of this release and the one before: another build of this checkout, and the real programs of the commit that stands for it
	@ORDERGRID_SKEW_HISTORY=1 $(GO) test -count 1 -v ./e2e/skew

.PHONY: scale
scale: ## The operator beside 10, 100 and 1,000 grids on a real API server with KWOK's nodes: table and plots in out/scale (GRIDS=10,100; docs/scale.md)
	@$(GO) run ./e2e/cluster/cmd/cluster binaries
	@$(GO) build -o bin/scale ./e2e/scale/cmd/scale
	@bin/scale --grids '$(GRIDS)'

.PHONY: certmanager
certmanager: ## cert-manager's own controllers issue and renew the certificates of an OrderGrid on a real API server (the first time they are built: minutes)
	@$(GO) run ./e2e/cluster/cmd/cluster binaries
	@ORDERGRID_CERTMANAGER=1 ORDERGRID_REQUIRE_ENVTEST=1 $(GO) test -count 1 -v -timeout 30m ./e2e/certmanager

.PHONY: alerts-check
alerts-check: ## Cause the conditions of the alert rules in real grids under a real Prometheus: which fired and resolved, after how long (ALERT=regexp of names)
	@$(GO) run ./e2e/cluster/cmd/cluster binaries
	@$(GO) run -tags faulty ./e2e/alerts/cmd/alerts -only '$(ALERT)'

.PHONY: e2e
e2e: ## Run all suites against the real cluster, or one: SUITE=smoke, or a drill: SUITE=pull-the-plug; RATE=orders/s under operations
	@ORDERGRID_OPERATIONS_RATE=$(if $(filter file,$(origin RATE)),,$(RATE)) hack/e2e.sh "$(SUITE)"

.PHONY: sinks-check
sinks-check: ## Kill 50 primaries under load, and every third time the sink, or cut the link to another site: each order is downstream once (minutes)
	@ORDERGRID_REQUIRE_KAFKA=1 ORDERGRID_REQUIRE_POSTGRES=1 ORDERGRID_SINK_KILLS=50 $(GO) test -count 1 -p 1 -timeout 60m -v -run GridKilled ./gateway/...
	@ORDERGRID_BENCH_SINKS=1 $(GO) test -count 1 -v -run TestSinks ./hack/bench

.PHONY: far-drills
far-drills: ## Drills of what is outside a grid, as processes: sink-outage, site-change, site-loss and site-restore, with certificates that read the far side itself, below out/far-drills (two minutes)
	@ORDERGRID_FAR_DRILLS=1 $(GO) test -count 1 -timeout 20m -v ./e2e/fardrill

.PHONY: scenarios-check
scenarios-check: ## The scenarios of order-probe about a system of processes, in their smallest size (minutes)
	@ORDERGRID_SYSTEM_SCENARIOS=1 $(GO) test -count 1 -v ./probe/system

.PHONY: reproduction
reproduction: build ## Run every scenario (BUDGET=60m) and write docs/reproduction.md: each published table beside what was measured; needs a quiet machine
	@bin/order-probe suite --out out/suite --budget $(or $(BUDGET),60m) || test $$? -ne 2
	@$(GO) run ./hack/reproduction --take out/suite

.PHONY: fix-check
fix-check: ## QuickFIX's acceptance scripts over real sockets, QuickFIX/J as a counterparty (Maven), a program of .NET, 100 gateways killed under orders, 2 million fuzzed runs of FIX sessions (FUZZ=100000000: of each kind, a night), and the table of docs/fix.md (minutes)
	@cd e2e/fix && $(GO) test -count 1 -v -run TestPage ./script -args -update
	@cd e2e/fix && ORDERGRID_FIX_SOCKETS=1 ORDERGRID_REQUIRE_QUICKFIXJ=1 ORDERGRID_REQUIRE_MONO=1 ORDERGRID_FIX_KILLS=100 $(GO) test -count 1 -timeout 20m ./...
	@ORDERGRID_FIX_FUZZ=$(or $(FUZZ),1000000) $(GO) test -count 1 -timeout 12h -run TestSessionSample ./gateway/fix

.PHONY: clients-check
clients-check: ## Clients of other languages: 50 primaries killed under load, each acknowledged order there once; types of the Python client (minutes)
	@python3 -m venv out/venv && out/venv/bin/pip install -q --disable-pip-version-check mypy==$(MYPY)
	@PATH="$(CURDIR)/out/venv/bin:$$PATH" ORDERGRID_REQUIRE_JAVA=1 ORDERGRID_REQUIRE_PYTHON=1 ORDERGRID_REQUIRE_MYPY=1 ORDERGRID_CLIENT_KILLS=50 $(GO) test -count 1 -p 1 -timeout 60m -v ./clients/...

.PHONY: streams-check
streams-check: ## Kill 20 primaries, 20 other nodes and 40 gateways under load: each WebSocket client has each order once; clients of other languages, and the console in a browser (minutes; MESSAGES=10000000: kill them until subscribers have got so many messages, and nothing else)
ifeq ($(strip $(MESSAGES)),)
	@python3 -m venv out/venv && out/venv/bin/pip install -q --disable-pip-version-check websockets==17.4
	@PATH="$(CURDIR)/out/venv/bin:$$PATH" ORDERGRID_REQUIRE_JAVA=1 ORDERGRID_REQUIRE_CHROMIUM=1 ORDERGRID_REQUIRE_PYTHON_WEBSOCKETS=1 ORDERGRID_STREAM_KILLS=20 $(GO) test -count 1 -timeout 60m -v ./cmd/order-gateway ./gateway/stream/...
else
	@ORDERGRID_STREAM_MESSAGES=$(MESSAGES) $(GO) test -count 1 -timeout 12h -v -run TestGridStreamsOverDeaths ./cmd/order-gateway
endif

.PHONY: autobahn-check
autobahn-check: ## The Autobahn test suite against the server of streams (minutes; it is of Python 2.7, which has to be there, with pip: PYTHON2=PROGRAM)
	@$(PYTHON2) -m pip install -q --disable-pip-version-check --upgrade --target out/autobahn autobahntestsuite==25.10.1
	@ORDERGRID_AUTOBAHN="$(CURDIR)/out/autobahn" PYTHON2="$(PYTHON2)" $(GO) test -count 1 -timeout 60m -v -tags autobahn -run TestAutobahnSuite ./gateway/stream/server

.PHONY: queries-check
queries-check: ## 100,000 random questions to a view against a loop over its rows and against SQLite, to broken views, and in SQL against PostgreSQL (minutes)
	@ORDERGRID_QUESTIONS=100000 $(GO) test -count 1 -timeout 60m -run RandomQuestions -v ./grid-node/query
	@$(GO) test -count 1 -timeout 20m -tags mutants -run Mutants -v ./grid-node/query
	@cd e2e/sqlite && $(GO) vet ./... && ORDERGRID_QUESTIONS=100000 $(GO) test -count 1 -timeout 60m -v .
	@cd e2e/sql && $(GO) vet ./... && ORDERGRID_SQL_QUESTIONS=20000 $(GO) test -count 1 -timeout 60m -v .

.PHONY: match-check
match-check: ## 5,000 seeds of the matching engine against a naive one, byte for byte, broken engines, and 2,000 new seeds of the world match (minutes)
	@ORDERGRID_MATCH_SEEDS=5000 $(GO) test -count 1 -timeout 60m -v -run OracleEveryByte ./grid-node/match
	@$(GO) test -count 1 -timeout 20m -tags mutants -run MutantsAreCaught -v ./grid-node/match
	@$(GO) run ./grid-node/sim/cmd/sim --world match --seeds 2000 --from new

.PHONY: limits-check
limits-check: ## 5,000 seeds of the risk limits against naive ones, and broken limits (minutes)
	@ORDERGRID_LIMITS_SEEDS=5000 $(GO) test -count 1 -timeout 60m -v -run 'TestOracle$$' ./grid-node/limits
	@$(GO) test -count 1 -timeout 20m -tags mutants -run MutantsAreCaught -v ./grid-node/limits

.PHONY: race
race: ## All tests of the module under the race detector, those of the operator too (longer than make test)
	@$(GO) run ./e2e/cluster/cmd/cluster binaries
	@KUBEBUILDER_ASSETS=$$($(GO) run ./e2e/cluster/cmd/cluster binaries --dir) ORDERGRID_REQUIRE_ENVTEST=1 $(GO) test -race -timeout 60m ./...

.PHONY: check
check: race sim sim-mutants sinks-check far-drills scenarios-check fix-check clients-check streams-check queries-check match-check limits-check ## Everything exhaustive, one after the other, for a night (hours; SEEDS=n for the simulator)

##@ Cluster

.PHONY: cluster-up
cluster-up: ## A real Kubernetes: CLUSTER=current|kind|local, else kind where Docker runs, else this machine itself (Linux, root)
	@$(CLUSTERCTL) up

.PHONY: cluster-down
cluster-down: ## Remove it, leaving no process, namespace, mount or route
	@$(CLUSTERCTL) down

.PHONY: chaos-mesh-up
chaos-mesh-up: ## Chaos Mesh on that cluster (the first time it is built: minutes)
	@go run ./e2e/chaosmesh/cmd/chaosmesh install

.PHONY: chaos-mesh-down
chaos-mesh-down: ## End every fault and remove Chaos Mesh
	@go run ./e2e/chaosmesh/cmd/chaosmesh uninstall

.PHONY: clean
clean: ## Remove bin/ and out/ (caches outside the checkout stay)
	@rm -rf bin out
