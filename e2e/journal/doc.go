// Package journal is a site without power on a real cluster: all pods of a grid with spec.journal are gone at once.
// `make e2e SUITE=journal` runs it.
package journal
