#!/usr/bin/env bash
# e2e.sh SUITE: brings the cluster up if need be, loads the images, and runs a suite against it: a folder of e2e/, a part of
# e2e/drills, e2e/operations or e2e/fardrill such as pull-the-plug or node-drain, the folder `cluster` of a module of its own,
# such as fix, or all.
set -euo pipefail
cd "$(dirname "$0")/.."
suite=$1
mapfile -t folders < <(grep -ls 'go:build e2e' e2e/*/*_test.go | xargs -n1 dirname | sort -u | xargs -n1 basename)
mapfile -t modules < <(grep -ls 'go:build e2e' e2e/*/cluster/*_test.go | cut -d/ -f2 | sort -u)
parts() { sed -n 's/^\t\t{"\([a-z-]*\)", .*/\1/p' "e2e/$1/$1_test.go"; }
mapfile -t drills < <(parts drills)
mapfile -t operations < <(parts operations)
mapfile -t far < <(parts fardrill)
part=. packages=() in_modules=()
if [ "$suite" = all ]; then
	packages=("${folders[@]/#/./e2e/}") in_modules=("${modules[@]}")
elif printf '%s\n' "${folders[@]}" | grep -qx -- "$suite"; then
	packages=("./e2e/$suite")
elif printf '%s\n' "${drills[@]}" | grep -qx -- "$suite"; then
	packages=(./e2e/drills) part="^TestDrills\$/^$suite\$"
elif printf '%s\n' "${operations[@]}" | grep -qx -- "$suite"; then
	packages=(./e2e/operations) part="^TestOperations\$/^$suite\$"
elif printf '%s\n' "${far[@]}" | grep -qx -- "$suite"; then
	packages=(./e2e/fardrill) part="^TestCluster\$/^$suite\$"
elif printf '%s\n' "${modules[@]}" | grep -qx -- "$suite"; then
	in_modules=("$suite")
else
	printf 'SUITE=%s: no such suite; there are: all, %s, of the drills: %s, of the far side: %s, and of operations: %s\n' \
		"$suite" "${folders[*]} ${modules[*]}" "${drills[*]}" "${far[*]}" "${operations[*]}" >&2
	exit 2
fi
go run ./e2e/cluster/cmd/cluster up
if [ "$suite" = fabric ]; then
	# On another cluster than the local one Multus and the network have to be there.
	go run ./e2e/cluster/cmd/cluster fabric || printf 'the suite continues with the networks of this cluster\n' >&2
fi
go run ./e2e/cluster/cmd/cluster image build --all --out out/images
go run ./e2e/cluster/cmd/cluster load out/images/*.tar
KUBECONFIG=$(go run ./e2e/cluster/cmd/cluster kubeconfig)
PATH=$(go run ./e2e/cluster/cmd/cluster binaries --dir):$PATH
export KUBECONFIG PATH
# The local cluster keeps its API server's audit log beside the kubeconfig: with it, suites count who asked the API server for what.
audit=$(dirname "$KUBECONFIG")/machines/control-plane/log/audit.log
if [ -r "$audit" ]; then export ORDERGRID_AUDIT_LOG=$audit; fi
status=0
if [ ${#packages[@]} -gt 0 ]; then
	go test -count=1 -p 1 -v -timeout 90m -tags e2e -run "$part" "${packages[@]}" || status=$?
fi
for module in "${in_modules[@]}"; do
	(cd "e2e/$module" && go test -count=1 -v -timeout 90m -tags e2e ./cluster) || status=$?
done
exit "$status"
