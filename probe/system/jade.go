package system

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/internal/wan"
	"github.com/ordergrid/ordergrid/probe/clock"
	"github.com/ordergrid/ordergrid/probe/published"
	"github.com/ordergrid/ordergrid/probe/report"
)

const (
	// minTarget is what share of the target rate has to be reached.
	minTarget = 0.9
	// accountsEach are the accounts of each user.
	accountsEach = 20
	// farRoad is what is between users and nodes that are far, one way.
	farRoad = time.Millisecond
)

// amount is the balance of an object, in its first bytes.
func amount(value []byte) uint64 {
	if len(value) < 8 {
		return 0
	}
	return binary.BigEndian.Uint64(value)
}

// add raises the balance of an object by 1, beside others that do so; it is made where it is not there.
func add(ctx context.Context, r *client.Region, key []byte) error {
	for {
		e, err := r.Get(ctx, key)
		if err != nil && !errors.Is(err, client.ErrNotFound) {
			return err
		}
		value := make([]byte, objectSize)
		binary.BigEndian.PutUint64(value, amount(e.Value)+1)
		_, err = r.PutIf(ctx, key, value, e.Version)
		var other *client.ConditionError
		if !errors.As(err, &other) {
			return err
		}
	}
}

// sum is that of all balances of a region, and how many objects it has.
func (k *objects) sum(ctx context.Context, region string) (total uint64, n int, err error) {
	err = k.c.Region(region).Scan(ctx, nil, func(e client.Entry) error {
		total += amount(e.Value)
		n++
		return nil
	})
	return total, n, err
}

// usersDo calls f for each user until the time is over, every user in a loop of its own, and counts what they did.
// interval is that of one user, from a start of its own; 0: one after the other.
func usersDo(ctx context.Context, users int, lasts, interval time.Duration, f func(ctx context.Context, user, n int) error) (all []time.Duration, err error) {
	begun := time.Now()
	var mu sync.Mutex
	err = eachBy(ctx, users, users, func(ctx context.Context, u int) error {
		var own []time.Duration
		for n := 0; ; n++ {
			due := time.Now()
			if interval > 0 {
				due = begun.Add(time.Duration(n)*interval + time.Duration(u)*interval/time.Duration(users))
			}
			if due.Sub(begun) >= lasts {
				break
			}
			if err := clock.Wait(ctx, time.Until(due)); interval > 0 && err != nil {
				return err
			}
			if err := f(ctx, u, n); err != nil {
				return err
			}
			own = append(own, time.Since(due))
		}
		mu.Lock()
		defer mu.Unlock()
		all = append(all, own...)
		return nil
	})
	slices.Sort(all)
	return all, err
}

// skiDemo is a mix of reads, changes and orders of many users at a target rate.
func skiDemo(ctx context.Context, d *published.Data, s published.Scenario, o Options, r *Report) (err error) {
	p, err := usersOf(s, o.Mode)
	if err != nil {
		return err
	}
	k, err := o.newObjects(ctx, 2*p.TargetTPS*p.MeasureS*(len(p.Users)+1)+1000, "accounts", "trades")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, k.end()) }()
	r.Columns = []string{"users", "where", "target TPS", "TPS", "mean ms", "p50 ms", "p99 ms", "max ms", "published users", "published TPS", "published ms"}
	r.Differences = append(r.Differences,
		"a transaction reads an account, raises it if no other transaction did meanwhile, writes a trade, and submits an order: exactly once each, and not all or nothing",
		fmt.Sprintf("there are no application servers: users are threads of the probe and ask the nodes, near without a road and far over one of %v each way; that the published Remote was faster, on hosts of its own, is not judged on one", farRoad))
	far, err := k.far(ctx)
	if err != nil {
		return err
	}
	defer far.Close() //nolint:errcheck // it never fails
	done := uint64(0)
	for i, users := range append(slices.Clone(p.Users), p.Users[0]) {
		where, c := "Local", k.c
		if i == len(p.Users) {
			where, c = "Remote", far
		}
		o.Say("%d users, %s, %d transactions/s", users, where, p.TargetTPS)
		times, err := skiers(ctx, c, users, p, i)
		if err != nil {
			return err
		}
		done += uint64(len(times))
		skiRow(d, r, where, users, p, times)
	}
	return k.balanced(ctx, r, done)
}

// far is a client at the end of a road to each node.
func (k *objects) far(ctx context.Context) (*client.Client, error) {
	var mu sync.Mutex
	roads := map[string]string{}
	return client.Dial(ctx, client.Config{Endpoints: k.grid.Endpoints, RequestTimeout: time.Minute, Dial: func(dialing context.Context, address string) (net.Conn, error) {
		mu.Lock()
		at := roads[address]
		if at == "" {
			road, err := wan.New(ctx, address, farRoad, 0)
			if err != nil {
				mu.Unlock()
				return nil, err
			}
			at = road.Addr
			roads[address] = at
		}
		mu.Unlock()
		return new(net.Dialer).DialContext(dialing, "tcp", at)
	}})
}

// skiers runs one number of users; step tells its trades from others.
func skiers(ctx context.Context, c *client.Client, users int, p published.Users, step int) ([]time.Duration, error) {
	accounts, trades := c.Region("accounts"), c.Region("trades")
	interval := time.Duration(users) * time.Second / time.Duration(p.TargetTPS)
	return usersDo(ctx, users, time.Duration(p.MeasureS)*time.Second, interval, func(ctx context.Context, u, n int) error {
		id := fmt.Sprintf("SKI-%d-%d-%d", step, u, n)
		if err := add(ctx, accounts, objectKey(u*7%users)); err != nil {
			return err
		}
		if _, err := trades.Put(ctx, []byte(id), objectValue("trade")); err != nil {
			return err
		}
		_, err := c.Submit(ctx, newOrder(nil, id, "SKI", "SYM", 100, ""))
		return err
	})
}

func skiRow(d *published.Data, r *Report, where string, users int, p published.Users, times []time.Duration) {
	tps := float64(len(times)) / float64(p.MeasureS)
	if len(times) == 0 {
		r.judge(Invalid, "%d users: no transaction", users)
		return
	}
	var total time.Duration
	for _, t := range times {
		total += t
	}
	mean, at := total/time.Duration(len(times)), func(q float64) string { return ms(times[min(len(times)-1, int(q*float64(len(times))))]) }
	// Other numbers of users stand beside the first published one, in the same order.
	of := 1000
	if where == "Local" && len(r.Rows) == 1 {
		of = 2000
	}
	wasTPS, wasMs := d.Ski(of, where)
	r.row(users, where, p.TargetTPS, fmt.Sprintf("%.0f", tps), ms(mean), at(0.5), at(0.99), at(1), of, wasTPS, wasMs)
	c := report.Comparison{Table: "SkiDemo", Row: fmt.Sprintf("%d users, %s", of, where), At: fmt.Sprintf("%d users", users), Metric: "TPS", Published: wasTPS}
	r.figure(c, tps)
	c.Metric, c.Unit, c.Published = "response, mean", "ms", wasMs
	r.beside(c, float64(mean)/float64(time.Millisecond))
	if tps < minTarget*float64(p.TargetTPS) {
		r.judge(Fail, "%d users, %s: %.0f transactions/s, allowed: %.0f or more", users, where, tps, minTarget*float64(p.TargetTPS))
	}
}

// balanced holds what regions have against what was acknowledged; the control is a change that is in no trade.
func (k *objects) balanced(ctx context.Context, r *Report, done uint64) error {
	total, _, err := k.sum(ctx, "accounts")
	if err != nil {
		return err
	}
	_, trades, err := k.sum(ctx, "trades")
	if err != nil {
		return err
	}
	if total != done || uint64(trades) != done {
		r.judge(Wrong, "%d transactions: the accounts sum up to %d, and there are %d trades", done, total, trades)
	}
	if err := add(ctx, k.c.Region("accounts"), objectKey(0)); err != nil {
		return err
	}
	more, _, err := k.sum(ctx, "accounts")
	if err != nil {
		return err
	}
	r.Control = fmt.Sprintf("an account was raised without a trade: the accounts sum up to %d, and there are %d trades", more, trades)
	if more != total+1 {
		r.judge(Invalid, "the control sums up to %d, and one more than %d was written: the sums are not to be believed", more, total)
	}
	return nil
}

// reads are those of accounts and addresses, and then the profile that writes: account, teller, branch and history.
func reads(ctx context.Context, d *published.Data, s published.Scenario, o Options, r *Report) (err error) {
	p, err := usersOf(s, o.Mode)
	if err != nil {
		return err
	}
	users := p.Users[0]
	n := users * accountsEach
	k, err := o.newObjects(ctx, 2*n+100_000*p.MeasureS, "accounts", "addresses", "debited", "tellers", "branches", "history")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, k.end()) }()
	r.Columns = []string{"profile", "users", "transactions/s", "p50 us", "p99 us", "p99.9 us", "other values", "published read TPS"}
	r.Differences = append(r.Differences,
		"users of a near cache share that of one client, which drops what is changed and gives no answer older than a second; other reads go to the nodes, one after the other for each user; reads by lease and at backups are not judged",
		"the report writes nothing; debit-credit is beside it: four changes, exactly once each, and not all or nothing")
	o.Say("%d accounts with addresses", n)
	if err := errors.Join(k.fillOwn(ctx, "accounts", n), k.fillOwn(ctx, "addresses", n)); err != nil {
		return err
	}
	was, _ := d.Cell("jade", "TPC-A", 1000, "read_tps")
	accounts, addresses := k.c.Region("accounts"), k.c.Region("addresses")
	near, closeNear, err := nearly(accounts, addresses)
	if err != nil {
		return err
	}
	defer closeNear()
	by := func(mode client.ReadMode) reader {
		return func(ctx context.Context, r *client.Region, key []byte) (client.Entry, error) {
			return r.Get(ctx, key, client.WithMode(mode))
		}
	}
	tps := map[string]float64{}
	for _, way := range []struct {
		name string
		read reader
	}{{"confirmed", by(client.Confirmed)}, {"leased", by(client.Leased)}, {"backup", by(client.Backup)}, {nearName, near}} {
		o.Say("%d users read, %s", users, way.name)
		var wrong atomic.Int64
		times, err := usersDo(ctx, users, time.Duration(p.MeasureS)*time.Second, 0, func(ctx context.Context, u, i int) error {
			key := objectKey((u*accountsEach + i*7) % n)
			for _, region := range []*client.Region{accounts, addresses} {
				e, err := way.read(ctx, region, key)
				if err != nil {
					return err
				}
				if !ownValue(key, e.Value) {
					wrong.Add(1)
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		tps[way.name] = profileRow(r, "read, "+way.name, users, p, times, wrong.Load(), fmt.Sprint(was.Value))
		if wrong.Load() > 0 {
			r.judge(Wrong, "%s: %d objects with another value", way.name, wrong.Load())
		}
		r.beside(report.Comparison{Table: "TPC-A", Row: "1000 users", Metric: "read TPS, " + way.name, Published: was.Value, At: fmt.Sprintf("%d users", users)}, tps[way.name])
	}
	if tps[nearName] <= tps["confirmed"] {
		r.judge(Fail, "%.0f transactions/s with a near cache, %.0f without: it has to be faster", tps[nearName], tps["confirmed"])
	}
	return k.debitCredit(ctx, r, users, p)
}

// nearName is how reads by a near cache are listed.
const nearName = "near cache"

// reader reads a key of a region.
type reader func(ctx context.Context, r *client.Region, key []byte) (client.Entry, error)

// nearly reads by a near cache of each region.
func nearly(regions ...*client.Region) (read reader, end func(), err error) {
	caches := map[*client.Region]*client.NearCache{}
	end = func() {
		for _, c := range caches {
			_ = c.Close() // it never fails
		}
	}
	for _, r := range regions {
		if caches[r], err = r.NearCache(client.NearCacheOptions{}); err != nil {
			delete(caches, r)
			end()
			return nil, nil, err
		}
	}
	return func(ctx context.Context, r *client.Region, key []byte) (client.Entry, error) {
		return caches[r].Get(ctx, key)
	}, end, nil
}

// ownValue reports whether a value is that of its key.
func ownValue(key, value []byte) bool {
	return len(value) == objectSize && string(value[:len(key)]) == string(key)
}

// fillOwn puts objects that begin with their keys.
func (k *objects) fillOwn(ctx context.Context, region string, n int) error {
	return each(ctx, n, func(ctx context.Context, i int) error {
		_, err := k.c.Region(region).Put(ctx, objectKey(i), objectValue(string(objectKey(i))))
		return err
	})
}

func profileRow(r *Report, name string, users int, p published.Users, times []time.Duration, wrong int64, was string) float64 {
	tps := float64(len(times)) / float64(p.MeasureS)
	if len(times) == 0 {
		r.judge(Invalid, "%s: no transaction", name)
		return 0
	}
	at := func(q float64) string {
		return fmt.Sprintf("%.0f", float64(times[min(len(times)-1, int(q*float64(len(times))))])/float64(time.Microsecond))
	}
	r.row(name, users, fmt.Sprintf("%.0f", tps), at(0.5), at(0.99), at(0.999), wrong, was)
	return tps
}

// debitCredit raises account, teller and branch by 1 and writes history; all have to sum up to the same.
func (k *objects) debitCredit(ctx context.Context, r *Report, users int, p published.Users) error {
	history := k.c.Region("history")
	times, err := usersDo(ctx, users, time.Duration(p.MeasureS)*time.Second, 0, func(ctx context.Context, u, i int) error {
		for _, part := range []struct {
			region string
			key    int
		}{{"debited", u*accountsEach + i%accountsEach}, {"tellers", u}, {"branches", u / 10}} {
			if err := add(ctx, k.c.Region(part.region), objectKey(part.key)); err != nil {
				return err
			}
		}
		_, err := history.Put(ctx, fmt.Appendf(nil, "%d-%d", u, i), objectValue("\x00\x00\x00\x00\x00\x00\x00\x01"))
		return err
	})
	if err != nil {
		return err
	}
	profileRow(r, "debit-credit", users, p, times, 0, "-")
	sums := func() (list [4]uint64, err error) {
		for i, region := range []string{"debited", "tellers", "branches", "history"} {
			if list[i], _, err = k.sum(ctx, region); err != nil {
				return list, err
			}
		}
		return list, nil
	}
	done := uint64(len(times))
	was, err := sums()
	if err != nil {
		return err
	}
	if was != [4]uint64{done, done, done, done} {
		r.judge(Wrong, "%d debits: accounts, tellers, branches and history sum up to %v", done, was)
	}
	if err := add(ctx, k.c.Region("debited"), objectKey(0)); err != nil {
		return err
	}
	now, err := sums()
	r.Control = fmt.Sprintf("an account was raised and nothing else: the sums of %d debits became %v", done, now)
	if now[0] != was[0]+1 || now[1] != was[1] {
		r.judge(Invalid, "the control sums up to %v, before it to %v: the sums are not to be believed", now, was)
	}
	return err
}
