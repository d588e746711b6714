// Package examples has functions that are of use as they are, built from the C in c.
// Which kind each is and how it is configured is in docs/functions.md.
package examples

import _ "embed" // the modules

// Modules, built by c/build.sh. A test builds them again and compares, where clang 14 is.
var (
	//go:embed fat-finger.wasm
	FatFinger []byte
	//go:embed restricted-list.wasm
	RestrictedList []byte
	//go:embed enrich-client.wasm
	EnrichClient []byte
	//go:embed audit-trail.wasm
	AuditTrail []byte
	//go:embed count-accounts.wasm
	CountAccounts []byte
	//go:embed add.wasm
	Add []byte
	//go:embed primes.wasm
	Primes []byte
	//go:embed notional.wasm
	Notional []byte
)
