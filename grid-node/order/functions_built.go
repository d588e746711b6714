//go:build !nofunctions

package order

// FunctionsBuilt is false in a program built with the tag nofunctions, which calls no functions: a
// benchmark shows beside it that a grid without functions pays nothing for those of others.
const FunctionsBuilt = true
