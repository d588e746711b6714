// Package outside is clients outside the cluster: from where neither pods nor services are reached they put orders on a grid of
// two shards, by node ports and by host ports, and follow its primaries. `make e2e SUITE=outside` runs it.
package outside
