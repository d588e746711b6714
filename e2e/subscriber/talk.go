package subscriber

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/coder/websocket"
)

// Position is the text from which a subscription resumes: what is had of each partition, such as 17 or 17.2.
func Position[T any](lineage string, had map[int]T) string {
	list := make([]string, len(had))
	for p := range list {
		list[p] = fmt.Sprintf("p%d:%v", p, had[p])
	}
	return lineage + "." + strings.Join(list, ",")
}

// Again connects the nth time as long as ended returns false; connection returns when it has ended. Its error is that of ctx.
func Again(ctx context.Context, ended func() bool, connection func(n int) error) error {
	for n := 0; !ended(); n++ {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if connection(n) != nil {
			time.Sleep(20 * time.Millisecond)
		}
	}
	return nil
}

// Gateway is where and how a client connects.
type Gateway struct {
	Address, Token string
	Silence        time.Duration // a connection on which nothing comes for so long is taken for lost; 1 s when 0
}

// Talk logs in, sends commands, and gives take each message, until done returns true (nil), take returns an error, or the
// connection is lost.
func (g Gateway) Talk(ctx context.Context, commands []string, done func() bool, take func([]byte) error) error {
	dialing, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	c, _, err := websocket.Dial(dialing, "ws://"+g.Address+"/stream", &websocket.DialOptions{Subprotocols: []string{"ordergrid.json.v1"}})
	if err != nil {
		return err
	}
	defer c.CloseNow() //nolint:errcheck // it may be closed
	c.SetReadLimit(1 << 20)
	for _, text := range append([]string{fmt.Sprintf(`{"op":"login","token":%q}`, g.Token)}, commands...) {
		if err := c.Write(ctx, websocket.MessageText, []byte(text)); err != nil {
			return err
		}
	}
	for !done() {
		reading, cancel := context.WithTimeout(ctx, cmp.Or(g.Silence, time.Second))
		_, b, err := c.Read(reading)
		cancel()
		if err != nil {
			return err
		}
		if err := take(b); err != nil {
			return err
		}
	}
	return nil
}
