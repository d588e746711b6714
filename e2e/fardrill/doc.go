// Package fardrill breaks what is outside a grid, and the grid as a whole, while orders flow: the database of a sink and
// the sink's process (sink-outage), everything of a site (site-loss), and a site in good order (site-change). Grids, sinks
// and links are processes of this machine. The recorder is that of FailoverDrills; its certificates come from reading the
// far side itself: the tables of PostgreSQL, the logs of the other site.
//
// `make far-drills` runs them and writes the certificates below out/far-drills.
package fardrill
