package api

import "testing"

func TestOrders(t *testing.T) {
	for _, c := range []struct {
		limit    int64
		replicas int
		least    int64
		most     int64
	}{{0, 2, 0, 0}, {128 << 20, 2, 0, 0}, {1 << 30, 2, 1_000_000, 1_100_000}, {4 << 30, 2, 5_000_000, 5_200_000}, {4 << 30, 1, 5_900_000, 6_000_000}} {
		if n := OrdersIn(c.limit, c.replicas); n < c.least || n > c.most {
			t.Errorf("room for %d orders in %d MiB with %d copies, want %d to %d", n, c.limit>>20, c.replicas, c.least, c.most)
		}
	}
}

// TestMemory: the memory for a number of orders has room for them, and for few more.
func TestMemory(t *testing.T) {
	for _, replicas := range []int{1, 2, 3} {
		for _, orders := range []int64{0, 1, 6000, 999_999, 2_640_000, 1e9, mostOrders} {
			limit := MemoryFor(orders, replicas)
			if limit <= 0 || limit%(1<<20) != 0 {
				t.Errorf("%d orders, %d copies: %d bytes; want whole MiB", orders, replicas, limit)
			}
			if n := OrdersIn(limit, replicas); n < orders || n > orders+orders/1_000_000+4000 {
				t.Errorf("%d orders, %d copies: %d MiB have room for %d", orders, replicas, limit>>20, n)
			}
		}
		if a, b := MemoryFor(-1, replicas), MemoryFor(0, replicas); a != b {
			t.Errorf("-1 orders take %d bytes, none %d", a, b)
		}
		if MemoryFor(1<<63-1, replicas) != MemoryFor(mostOrders, replicas) {
			t.Error("overflow is not bounded")
		}
	}
}

// TestWithRecords: records make room for fewer orders, and as many as were without functions.
func TestWithRecords(t *testing.T) {
	for functions, want := range map[int]int64{0: 1000, 1: 688, 2: 525} {
		if n := WithRecords(1000, 2, functions); n != want {
			t.Errorf("%d functions: room for %d orders of 1000, want %d", functions, n, want)
		}
		for _, orders := range []int64{0, 1, 999_999, mostOrders} {
			if n := WithRecords(ForRecords(orders, 2, functions), 2, functions); n < orders && orders < mostOrders/2 || n > orders+1 {
				t.Errorf("%d functions, %d orders: room for %d", functions, orders, n)
			}
		}
	}
}
