module github.com/ordergrid/ordergrid/e2e/fix

go 1.26.0

require (
	github.com/ordergrid/ordergrid v0.0.0-00010101000000-000000000000
	github.com/quickfixgo/quickfix v0.9.7
)

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/pires/go-proxyproto v0.7.0 // indirect
	github.com/pkg/errors v0.9.1 // indirect
	github.com/quagmt/udecimal v1.8.0 // indirect
	github.com/shopspring/decimal v1.4.0 // indirect
	golang.org/x/crypto v0.57.0 // indirect
	golang.org/x/net v0.60.0 // indirect
	golang.org/x/sync v0.23.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
)

replace github.com/ordergrid/ordergrid => ../..
