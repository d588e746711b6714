// Package drills runs every drill suite on a real cluster through the same commands people have: the chart, Chaos Mesh, an
// executor for machines, `kubectl ordergrid drill run`. Then it breaks the drills themselves: the operator is killed in the
// middle of a fault, a drill is deleted, Chaos Mesh's controller dies; no fault may remain.
//
// `make e2e SUITE=pull-the-plug` runs one suite, `make e2e SUITE=drills` all of them and the rest. Certificates are written
// below out/drills.
package drills
