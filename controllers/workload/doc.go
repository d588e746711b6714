// Package workload has what controllers share by what they run. A run of an OrderProbe or FailoverDrill is a Job of
// order-probe: none of its pods is ever replaced, and the operator copies their measurements into status. A GridLink and
// an OrderGateway are one Deployment each: the status pages of its pods, its network policy. Also of those that run
// nothing (GridFunction, GridRegion): the writing of status with its events, and the metrics of a kind.
package workload
