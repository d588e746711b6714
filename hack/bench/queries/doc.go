// Package queries asks systems the same questions about the same orders, one client on loopback: the grid by its own
// client and through its listener for SQL, PostgreSQL, Redis, Hazelcast and Coherence. What each answers is compared with
// what follows from the orders; a figure beside a wrong answer is none.
package queries
