// Package system runs the scenarios that are about a system of processes and not about a rate of orders: a grid whose
// primary is killed (stac-durability), a grid that is loaded from files (bar-load), streams to many clients (sol-fanout),
// questions (bar-query), users (jade-thin). It starts the programs, measures from outside, and judges with a negative
// control. What it measured beside the published figures is a Report.
package system
