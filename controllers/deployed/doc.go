// Package deployed holds what the controllers of kinds that run as one Deployment share: their pods' status pages, the
// writing of status with its events, their metrics, and their network policies. Those kinds are GridLink and
// OrderGateway. A GridFunction, which runs nothing, shares the writing of status and the metrics.
package deployed
