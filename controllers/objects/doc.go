// Package objects has what the operator's objects have in common whatever their kind: labels, the security contexts by
// which their pods pass the Restricted Pod Security Standard, and the request to Multus for the network of spec.fabric.
package objects
