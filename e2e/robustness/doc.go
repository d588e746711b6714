// Package robustness breaks a grid while orders flow: scenarios are what can happen to a grid and how each is made to
// happen; a Report turns the judged history into a verdict, a table and JSON. History, traffic and judges are those of
// drills; faults of processes without a Kubernetes are in faults
// (docs/adr/0116-robustness-has-its-injector-and-the-drills-judges.md).
package robustness
