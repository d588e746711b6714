#!/usr/bin/env bash
# Everything that gates a change. Exit 0 only when all of it passed.
set -euo pipefail
cd "$(dirname "$0")/.."

# Nothing here is debugged: compiling without DWARF takes an eighth less. Paths are trimmed as in the programs that are
# built, and C is left out as there: what both need is compiled once.
export GOFLAGS="${GOFLAGS:-} -trimpath -gcflags=all=-dwarf=false" CGO_ENABLED=0

# The race detector watches packages that start goroutines or share memory between them, tests included. Those that are
# linked with Kubernetes' client, and what starts the product as processes, run without it: compiling that twice would take
# a fifth of a cold run. `make race` has them too, every night. What takes longest is first, so that nothing waits for it.
slow='/(grid-node/node|controllers/(ordergrid|manager|failoverdrill)|e2e/hostile|gateway/(sink/postgres|archive)|probe/cli|client|cmd/order-gateway|charts) '
unraced='/ordergrid/(api|charts|controllers|dashboards|docs|e2e|hack|cmd/(kubectl-ordergrid|operator)|gateway/judge|grid-node/arbiter/kube|internal/envtest|probe/(cli|drill|htmlreport|system))(/|$)'
packages=$(go list -f '{{.ImportPath}} {{.Dir}}' "${@:-./...}")
packages=$(grep -E "ordergrid/ordergrid$slow" <<<"$packages" || true; grep -vE "ordergrid/ordergrid$slow" <<<"$packages" || true)
bounds='Alloc|Memory|LiveHeap|EveryByte|SessionSample' # of tests that the race detector, or an invariant, would fail or slow down
raced=() plain=() invariants=() bounded=()
while read -r package dir; do
	if [[ $package =~ /grid-node/(replica|sim)$ ]]; then
		invariants+=("$package") # below, with what they check of themselves
	elif [[ $package =~ $unraced ]] || ! grep -qE '^\s*(defer )?go [a-zA-Z_]|\.Go\(|"sync(/atomic)?"|t\.Parallel\(\)' "$dir"/*.go; then
		plain+=("$package")
		continue
	else
		raced+=("$package")
	fi
	if grep -qE "^func Test[A-Za-z0-9]*($bounds)" "$dir"/*.go; then bounded+=("$package"); fi
done <<<"$packages"

step() { printf '\n== %s (%ss)\n' "$1" "$SECONDS"; }

step "real Kubernetes API server for the CRD, controller and chart tests (built once, then cached)"
if [ -z "${KUBEBUILDER_ASSETS:-}" ]; then
	go run ./e2e/cluster/cmd/cluster binaries
	KUBEBUILDER_ASSETS=$(go run ./e2e/cluster/cmd/cluster binaries --dir)
	export KUBEBUILDER_ASSETS
fi
export ORDERGRID_REQUIRE_ENVTEST=1

# Reports are looked at in a real browser, TLS records by OpenSSL, the Kafka sink by a real broker, the Python client
# runs, functions are built from their source. Where these can be installed they must be there; elsewhere those tests report why they are skipped.
step "Chromium for the tests of HTML reports, OpenSSL for those of TLS, a JDK and Maven for Kafka and the client for Java, Python for its client, clang, Rust and AssemblyScript for functions, TypeScript for the console"
missing=()
command -v chromium chromium-browser google-chrome >/dev/null || missing+=(chromium fonts-dejavu-core)
command -v openssl >/dev/null || missing+=(openssl)
command -v mvn >/dev/null || missing+=(maven)
command -v python3 >/dev/null || missing+=(python3)
command -v javac >/dev/null || missing+=(default-jdk-headless)
command -v clang-14 >/dev/null && command -v wasm-ld-14 >/dev/null || missing+=(clang-14 lld-14)
[ -d /usr/lib/rustlib/wasm32-unknown-unknown ] || missing+=(rustc libstd-rust-dev-wasm32)
if [ ${#missing[@]} -gt 0 ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
	export DEBIAN_FRONTEND=noninteractive
	apt-get -q -o DPkg::Lock::Timeout=120 update >/dev/null && apt-get -q -y -o DPkg::Lock::Timeout=120 install --no-install-recommends "${missing[@]}" >/dev/null ||
		echo "${missing[*]} cannot be installed here"
fi
if command -v chromium chromium-browser google-chrome; then export ORDERGRID_REQUIRE_CHROMIUM=1; fi
if command -v openssl; then export ORDERGRID_REQUIRE_OPENSSL=1; fi
if command -v java && command -v mvn; then export ORDERGRID_REQUIRE_KAFKA=1; fi
if command -v python3; then export ORDERGRID_REQUIRE_PYTHON=1; fi
if command -v javac; then export ORDERGRID_REQUIRE_JAVA=1; fi
if command -v clang-14 && command -v wasm-ld-14; then export ORDERGRID_REQUIRE_CLANG=1; fi
if [[ $(/usr/bin/rustc --version 2>/dev/null) == "rustc 1.63."* && -d /usr/lib/rustlib/wasm32-unknown-unknown ]] && command -v wasm-ld-14; then export ORDERGRID_REQUIRE_RUST=1; fi
if command -v npm && npm install --no-audit --no-fund --silent --prefix out/assemblyscript assemblyscript@0.28.20; then
	export ASC=$PWD/out/assemblyscript/node_modules/.bin/asc ORDERGRID_REQUIRE_ASC=1
fi
# The console's scripts are served as they are; their types are checked.
if command -v npm && npm install --no-audit --no-fund --silent --prefix out/typescript typescript@7.0.2; then
	export TSC=$PWD/out/typescript/node_modules/.bin/tsc ORDERGRID_REQUIRE_TSC=1
fi

# The sink for PostgreSQL writes to a real server, a throwaway one of Debian's packages.
step "PostgreSQL for the tests of its sink"
if ! ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
	export DEBIAN_FRONTEND=noninteractive
	apt-get -q -o DPkg::Lock::Timeout=120 update >/dev/null && apt-get -q -y -o DPkg::Lock::Timeout=120 install --no-install-recommends postgresql-15 >/dev/null ||
		echo "postgresql-15 cannot be installed here"
fi
if ls /usr/lib/postgresql/*/bin/initdb 2>/dev/null; then export ORDERGRID_REQUIRE_POSTGRES=1; fi

step "go vet"
# What it compiles, the tests need too.
[ ${#raced[@]} -eq 0 ] || CGO_ENABLED=1 go vet -race "${raced[@]}"
[ ${#plain[@]} -eq 0 ] || go vet "${plain[@]}"
[ ${#invariants[@]} -eq 0 ] || go vet -tags invariants "${invariants[@]}"
go vet -tags nofunctions ./grid-node/... ./cmd/grid-node # what a benchmark compares with
go vet -tags autobahn ./gateway/stream/server # make autobahn-check

step "generated files"
go run ./hack/generate --verify

step "API conventions"
go run ./hack/apilint ./api/v1alpha1

step "alert and recording rules, with promtool (built once, then cached)"
promtool=$(go run ./e2e/prometheus/cmd/prometheus binaries)/promtool
"$promtool" check rules --lint=all --lint-fatal dashboards/rules/*.rules.yaml
"$promtool" test rules dashboards/rules/*.rules_test.yaml

# Programs that tests start are built once, see e2e/testgrid.
ORDERGRID_TEST_BEGAN=$(date +%s)
export ORDERGRID_TEST_BEGAN

# A part of the simulator's seeds is new each time. Set to what a failed run printed, it is the same again.
export ORDERGRID_SIM_FROM=${ORDERGRID_SIM_FROM:-$((10000000 + RANDOM * 32768 + RANDOM))}

step "tests, those of ${#raced[@]} packages with the race detector (new seeds of the simulator: ORDERGRID_SIM_FROM=$ORDERGRID_SIM_FROM)"
# Half of the time of these tests is waiting, for leases, API servers and processes: twice as many packages as cores run
# at once where there is memory to link so many.
side_by_side=$(nproc)
if [ "$(awk '/MemAvailable/ {print int($2 / 1048576)}' /proc/meminfo 2>/dev/null || echo 0)" -ge 12 ]; then side_by_side=$((2 * side_by_side)); fi
[ ${#raced[@]} -eq 0 ] || CGO_ENABLED=1 go test -race -p "$side_by_side" -timeout 40m "${raced[@]}"
[ ${#plain[@]} -eq 0 ] || go test -p "$side_by_side" -timeout 40m "${plain[@]}"

step "bundle for the Operator Lifecycle Manager, a module of its own"
(cd hack/olm && go vet ./... && go test ./... && go run . --verify --helm "$KUBEBUILDER_ASSETS/helm")

step "helpers of Chaos Mesh's daemon, a module of its own"
(cd e2e/chaosmesh/binaries && go vet ./cmd/... && go test ./cmd/...)

step "QuickFIX's acceptance scripts and quickfixgo's initiator against the FIX acceptor, a module of its own"
(cd e2e/fix && go vet ./... && go test ./...)

step "S3 server of the archive's tests, a module of its own"
(cd e2e/downstream/s3server && go mod verify)

step "SQLite of the tests of questions, a module of its own (its tests: make queries-check)"
(cd e2e/sqlite && go mod verify)

step "clients of PostgreSQL for the listener of SQL, a module of its own (its tests: make queries-check)"
(cd e2e/sql && go mod verify)

step "NATS beside the server of streams, a module of its own"
(cd hack/streambench/natsserver && go vet ./...)

# What one replica can check of its whole log costs too much for production.
step "protocol core and simulator with the costly invariants"
[ ${#invariants[@]} -eq 0 ] || go test -timeout 40m -tags invariants "${invariants[@]}"

# The race detector allocates, so what must not allocate is asserted without it.
step "allocation and memory bounds, and what is exhaustive, without the race detector"
[ ${#bounded[@]} -eq 0 ] || go test -timeout 40m -run "$bounds" -count=1 "${bounded[@]}"

step "passed"
