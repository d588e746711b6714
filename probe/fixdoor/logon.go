package fixdoor

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// heartBt is HeartBtInt (108), the longest that a gateway takes: a thread reads while its order has no report, and not
// between two orders.
const heartBt = time.Hour

// logonLimit is how long an answer to a Logon may take: a gateway may ask another one whether the session is in use.
const logonLimit = 5 * time.Second

// errAnotherDay: numbers begin anew at midnight, UTC, and what became of an order of the day before cannot be asked.
var errAnotherDay = errors.New("the day of the session has ended, in UTC, before the order had its report")

func today() int64 { return time.Now().Unix() / (24 * 3600) }

// resume logs on again, and again until it may or the time is over.
func (x *Session) resume(ctx context.Context, until time.Time) error {
	if x.day != 0 {
		x.Reconnects++
	}
	ctx, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, 250*time.Millisecond) {
		reset := x.day != today()
		if reset && x.pending.seq != 0 {
			return fmt.Errorf("session %s: %w", x.name, errAnotherDay)
		}
		err := x.logon(ctx, reset)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause):
		}
	}
}

// logon connects to the next address and logs on, once; reset begins both numbers with 1.
func (x *Session) logon(ctx context.Context, reset bool) (err error) {
	address := x.door.cfg.Addresses[x.at%len(x.door.cfg.Addresses)]
	x.at++
	defer func() {
		if err != nil {
			x.drop()
			err = fmt.Errorf("log on as %s at %s: %w", x.name, address, err)
		}
	}()
	dialling, cancel := context.WithTimeout(ctx, logonLimit)
	defer cancel()
	if x.c, err = dial(dialling, address, x.door.cfg.TLS); err != nil {
		return err
	}
	fields := "98=0\x01108=" + strconv.Itoa(int(heartBt/time.Second)) + "\x01"
	if reset {
		x.in, x.out = 1, 1
		fields += "141=Y\x01"
	}
	if x.name.Version == "FIXT.1.1" {
		fields += "1137=9\x01" // DefaultApplVerID: FIX 5.0 SP2
	}
	if x.user.name != "" {
		fields += "553=" + x.user.name + "\x01554=" + x.user.password + "\x01"
	}
	x.have, x.asked = 0, 0
	if err := x.say("A", fields); err != nil {
		return err
	}
	day := today()
	if err := x.loggedOn(ctx); err != nil {
		return err
	}
	if reset {
		x.day = day
	}
	return nil
}

// loggedOn waits for the answer to a Logon. A gateway that refuses one ends the connection without an answer.
func (x *Session) loggedOn(ctx context.Context) error {
	for until := time.Now().Add(logonLimit); ; {
		err := x.pull()
		switch {
		case errors.Is(err, errTick):
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if time.Now().After(until) {
				return fmt.Errorf("no answer within %v: has the grid a primary?", logonLimit)
			}
			continue
		case err != nil:
			return fmt.Errorf("the gateway ended the connection (%w): it does not take the Logon; its /status says why", err)
		}
		m, after, err := next(x.buf[:x.have])
		switch {
		case err != nil:
			return err
		case after == nil: // not whole
		case m.kind != 'A':
			return fmt.Errorf("the gateway answers with MsgType (35) %.4q: %.200s", m.get("\x0135="), m.get("\x0158="))
		default:
			return x.handle()
		}
	}
}

// drop ends the connection.
func (x *Session) drop() {
	if x.c != nil {
		_ = x.c.Close() // it is not used any more
		x.c = nil
	}
	x.have = 0
}

// Close logs out.
func (x *Session) Close() error {
	if x.c == nil {
		return nil
	}
	if err := x.say("5", ""); err == nil {
		for until := time.Now().Add(time.Second); time.Now().Before(until); {
			if err := x.read(); err != nil && !errors.Is(err, errTick) {
				break
			}
		}
	}
	x.drop()
	return nil
}
