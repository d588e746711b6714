package queries

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/ordergrid/ordergrid/hack/bench/peers"
	"github.com/ordergrid/ordergrid/hack/bench/system"
)

// Redis is a primary and a replica: a hash for each order, a set for each account, sorted sets for price and time.
type Redis struct {
	*peers.Redis

	running *system.Running
	conn    *peers.RedisConn
	orders  *Orders
}

// MemoryMiB implements System.
func (r *Redis) MemoryMiB(orders int, _ bool) int64 {
	const each = 1400 // of a process, with the orders of an index
	return 2 * (64 + int64(orders)*each/mib)
}

// Prepare implements System.
func (r *Redis) Prepare(context.Context) error { return nil }

// Start implements System.
func (r *Redis) Start(ctx context.Context, o *Orders) (err error) {
	r.orders = o
	if r.running, err = r.Redis.Start(ctx, system.Loopback{}, system.Topology{Copies: 2}); err != nil {
		return err
	}
	if r.conn, err = peers.DialRedis(ctx, system.Loopback{}, r.running.Addresses[0]); err != nil {
		return err
	}
	// So that an order takes a third of the memory; questions about it take about as long.
	_, err = r.conn.Do("config", "set", "hash-max-listpack-value", "512")
	return err
}

// redisPipeline is how many orders are unanswered.
const redisPipeline = 1_000

// Load implements System.
func (r *Redis) Load(ctx context.Context, batch []Order) (took time.Duration, err error) {
	for len(batch) > 0 && err == nil {
		n := min(redisPipeline, len(batch))
		begun := time.Now()
		err = errors.Join(r.load(batch[:n]), ctx.Err())
		took, batch = took+time.Since(begun), batch[n:]
	}
	return took, err
}

func (r *Redis) load(batch []Order) error {
	for i := range batch {
		x := &batch[i]
		cents, ms := strconv.FormatInt(x.Cents, 10), strconv.FormatInt(x.Ms, 10)
		if err := errors.Join(
			r.conn.Send("hset", "o:"+x.ID, "id", x.ID, "account", x.Account, "symbol", x.Symbol, "side", x.Side, "cents", cents, "qty", strconv.FormatInt(x.Qty, 10),
				"ordtype", x.OrdType, "tif", x.TIF, "ms", ms, "fix", string(x.FIX)),
			r.conn.Send("sadd", "a:"+x.Account, x.ID), r.conn.Send("zadd", "price", cents, x.ID), r.conn.Send("zadd", "time", ms, x.ID)); err != nil {
			return err
		}
	}
	if err := r.conn.Flush(); err != nil {
		return err
	}
	for range 4 * len(batch) {
		if _, err := r.conn.Receive(); err != nil {
			return err
		}
	}
	return r.copied()
}

// copied returns when the replica has all.
func (r *Redis) copied() error {
	n, err := r.conn.Do("wait", "1", "60000")
	if err == nil && n != int64(1) {
		err = fmt.Errorf("redis: WAIT 1 is answered with %v, wanted: 1, the replica", n)
	}
	return err
}

// Scripts, which run in the server. each goes through all orders, a page of the set by price at a time.
const (
	redisOrder = `local function order(k) return redis.call('hmget', 'o:'..k, 'id', 'account', 'symbol', 'side', 'cents', 'qty', 'ordtype', 'tif', 'ms') end `
	redisEach  = `local function each(f) for from = 0, redis.call('zcard', 'price') - 1, 5000 do
  for _, k in ipairs(redis.call('zrange', 'price', from, from + 4999)) do f('o:'..k) end end end `
	redisEqual = redisOrder + `local all = {} for i, k in ipairs(redis.call('smembers', 'a:'..ARGV[1])) do all[i] = order(k) end return all`
	redisRange = redisOrder + `local all = {} for _, k in ipairs(redis.call('zrange', 'price', ARGV[1], '('..ARGV[2], 'byscore')) do
  local ms = tonumber(redis.call('hget', 'o:'..k, 'ms')) if ms >= tonumber(ARGV[3]) and ms < tonumber(ARGV[4]) then all[#all + 1] = order(k) end end return all`
	redisCount = redisEach + `local n = 0 each(function(k) if redis.call('hget', k, ARGV[1]) == ARGV[2] and (ARGV[3] == nil or redis.call('hget', k, ARGV[3]) == ARGV[4]) then n = n + 1 end end) return n`
	redisGroup = redisEach + `local count, sum, all = {}, {}, {} each(function(k) local v = redis.call('hmget', k, 'symbol', 'qty') local s = v[1]
  count[s] = (count[s] or 0) + 1 sum[s] = (sum[s] or 0) + tonumber(v[2]) end)
  for s, n in pairs(count) do all[#all + 1] = {s, string.format('%d', n), string.format('%d', sum[s])} end return all`
	redisPatch = redisEach + `local n = 0 each(function(k) if redis.call('hget', k, 'side') == '2' then redis.call('hset', k, 'tif', ARGV[1]) n = n + 1 end end) return n`
)

// command is what asks a question for the i-th time.
func (r *Redis) command(q *Question, i int) []string {
	number := func(n int64) string { return strconv.FormatInt(n, 10) }
	switch q.Op {
	case Get:
		return []string{"hmget", "o:" + q.key(i), "id", "account", "symbol", "side", "cents", "qty", "ordtype", "tif", "ms", "fix"}
	case Equal:
		return []string{"eval", redisEqual, "0", hotAccount}
	case Count:
		return []string{"eval", redisCount, "0", "qty", number(hotQty)}
	case Range:
		return []string{"eval", redisRange, "0", number(q.cents[0]), number(q.cents[1]), number(q.ms[0]), number(q.ms[1])}
	case Group:
		return []string{"eval", redisGroup, "0"}
	case Patched:
		return []string{"eval", redisCount, "0", "tif", patchedTIF}
	case PatchedSells:
		return []string{"eval", redisCount, "0", "tif", patchedTIF, "side", "2"}
	default:
		return []string{"zcard", "price"}
	}
}

// Ask implements Asker.
func (r *Redis) Ask(_ context.Context, q *Question, first, n int) ([]Took, error) {
	return repeat(first, n, func(i int) (func() (Answer, error), error) {
		answer, err := r.conn.Do(r.command(q, i)...)
		return func() (Answer, error) { return redisAnswer(q, answer) }, err
	})
}

func redisAnswer(q *Question, answer any) (a Answer, err error) {
	if n, ok := answer.(int64); ok {
		return counted(n), nil
	}
	rows, ok := answer.([]any)
	if !ok {
		return a, fmt.Errorf("redis: %s is answered with %v", q.Op, answer)
	}
	if q.Op == Get {
		if len(rows) != len(columns)+1 {
			return a, fmt.Errorf("redis: %s is answered with %d fields, wanted: %d", q.Op, len(rows), len(columns)+1)
		}
		rows = []any{rows[:len(columns)]} // the message is the last one
	}
	for _, row := range rows {
		fields, _ := row.([]any) // without any: a row that is not one of the orders
		texts := make([]string, len(fields))
		for i := range fields {
			texts[i], _ = fields[i].(string)
		}
		a.add(texts...)
	}
	return a, nil
}

// Askers implements System.
func (r *Redis) Askers(context.Context) ([]Asker, error) { return []Asker{r}, nil }

// Patch implements System.
func (r *Redis) Patch(ctx context.Context) (time.Duration, string, error) {
	begun := time.Now()
	if _, err := r.conn.Do("eval", redisPatch, "0", patchedTIF); err != nil {
		return 0, "", err
	}
	if err := r.copied(); err != nil {
		return 0, "", err
	}
	took := time.Since(begun)
	wrong, err := differs(ctx, r, r.orders.AfterPatch()...)
	return took, wrong, err
}

// Drop implements System.
func (r *Redis) Drop(ctx context.Context) (time.Duration, string, error) {
	begun := time.Now()
	if _, err := r.conn.Do("flushall", "async"); err != nil {
		return 0, "", err
	}
	if err := r.copied(); err != nil {
		return 0, "", err
	}
	took := time.Since(begun)
	wrong, err := differs(ctx, r, AfterDrop())
	return took, wrong, err
}

// PIDs implements System.
func (r *Redis) PIDs() []int { return r.running.PIDs }

// Notes implements System.
func (r *Redis) Notes() []string {
	return []string{fmt.Sprintf("redis: primary and replica; a hash for each order, a set for each account, sorted sets of prices and times; loaded by pipelines of %d orders, each with WAIT 1; questions and patch are scripts (Lua) in the server; drop is FLUSHALL ASYNC", redisPipeline)}
}

// Stop implements System.
func (r *Redis) Stop() error {
	if r.conn != nil {
		_ = r.conn.Close() // it ends with the server
	}
	var err error
	if r.running != nil {
		err = r.running.Stop()
	}
	r.conn, r.running = nil, nil
	return err
}
