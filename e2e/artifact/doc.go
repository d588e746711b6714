// Package artifact gets what tests and local clusters run and this repository does not contain: programs from Go modules,
// built beside the product's own and kept in a cache outside the checkout, keyed by everything that determines them (a
// module of its own keeps their dependencies out of the product's); programs from Debian packages; class paths from Maven.
package artifact
