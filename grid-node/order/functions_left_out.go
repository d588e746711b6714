//go:build nofunctions

package order

// FunctionsBuilt is true in every other program.
const FunctionsBuilt = false
