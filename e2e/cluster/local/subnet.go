package local

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
)

// registry is where clusters of all users' checkouts agree, per boot, on which
// of them has which /16: file names are indexes, contents state directories.
const registry = "/run/ordergrid/subnets"

// reserveIndex returns the /16 this state directory holds, or takes the first
// one that no other cluster and no route or address of the host uses.
func reserveIndex(ctx context.Context, state string) (int, error) {
	unlock, err := flock(filepath.Join(filepath.Dir(registry), "lock"))
	if err != nil {
		return 0, err
	}
	defer unlock()
	if err := os.MkdirAll(registry, 0o755); err != nil {
		return 0, err
	}
	held := heldIndexes(registry)
	for index, holder := range held {
		if holder == state {
			return index, nil
		}
	}
	used, err := hostPrefixes(ctx)
	if err != nil {
		return 0, err
	}
	index, err := freeIndex(held, used)
	if err != nil {
		return 0, err
	}
	return index, os.WriteFile(filepath.Join(registry, strconv.Itoa(index)), []byte(state), 0o644)
}

// releaseIndex gives up whatever index the state directory holds. When it was
// the last on this machine, what clusters share goes too.
func releaseIndex(state string) error {
	lock := filepath.Join(filepath.Dir(registry), "lock")
	unlock, err := flock(lock)
	if err != nil {
		return err
	}
	defer unlock()
	held := heldIndexes(registry)
	others := len(held)
	for index, holder := range held {
		if holder == state {
			others--
			if err := os.Remove(filepath.Join(registry, strconv.Itoa(index))); err != nil {
				return err
			}
		}
	}
	if others > 0 {
		return nil
	}
	if err := restoreInotify(); err != nil {
		return err
	}
	return os.RemoveAll(filepath.Dir(registry))
}

// heldIndexes reads the registry and drops entries whose cluster is gone, as
// after its state directory was deleted by hand.
func heldIndexes(dir string) map[int]string {
	held := map[int]string{}
	entries, _ := os.ReadDir(dir)
	for _, entry := range entries {
		index, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		path := filepath.Join(dir, entry.Name())
		holder, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		if _, err := os.Stat(string(holder)); os.IsNotExist(err) {
			_ = os.Remove(path)
			continue
		}
		held[index] = string(holder)
	}
	return held
}

// freeIndex is the lowest index neither held nor overlapping a used prefix.
func freeIndex(held map[int]string, used []netip.Prefix) (int, error) {
next:
	for index := range maxClusters {
		if _, taken := held[index]; taken {
			continue
		}
		for _, prefix := range used {
			if prefix.Overlaps(indexNetwork(index)) {
				continue next
			}
		}
		return index, nil
	}
	return 0, fmt.Errorf("all of 10.%d.0.0/16 to 10.%d.0.0/16 are in use by clusters (%s) or the host's routes: take a cluster down",
		firstOctet, firstOctet+maxClusters-1, registry)
}

// hostPrefixes lists the networks the host can already reach, without the
// default route.
func hostPrefixes(ctx context.Context) ([]netip.Prefix, error) {
	out, err := run(ctx, nil, "ip", "-json", "-4", "route", "show", "table", "all")
	if err != nil {
		return nil, err
	}
	return parseRoutes([]byte(out))
}

func parseRoutes(jsonRoutes []byte) ([]netip.Prefix, error) {
	var routes []struct {
		Dst string `json:"dst"`
	}
	if err := json.Unmarshal(jsonRoutes, &routes); err != nil {
		return nil, fmt.Errorf("reading the host's routes: %w", err)
	}
	var used []netip.Prefix
	for _, route := range routes {
		if prefix, err := netip.ParsePrefix(route.Dst); err == nil && prefix.Bits() > 0 {
			used = append(used, prefix)
		} else if addr, err := netip.ParseAddr(route.Dst); err == nil {
			used = append(used, netip.PrefixFrom(addr, addr.BitLen()))
		}
	}
	return used, nil
}
