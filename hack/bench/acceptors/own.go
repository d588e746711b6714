package acceptors

import (
	"fmt"
	"io"
	"net"

	"github.com/ordergrid/ordergrid/gateway/fix"
	"github.com/ordergrid/ordergrid/gateway/fix/acceptor"
	"github.com/ordergrid/ordergrid/gateway/fix/fixtest"
)

// Main is the process of Own: HOST PORT TARGET SENDER...
func Main(args []string, _ io.Reader, out io.Writer) error {
	if len(args) < 4 {
		return fmt.Errorf("acceptor: %d arguments, allowed: HOST PORT TARGET SENDER...", len(args))
	}
	sessions := map[fix.ID]*fix.Session{}
	s, err := acceptor.New(acceptor.Config{Listen: []string{net.JoinHostPort(args[0], args[1])}, Fix: fix.Config{
		Find: func(id fix.ID) *fix.Session { return sessions[id] },
	}})
	if err != nil {
		return err
	}
	for _, sender := range args[3:] {
		id := fix.ID{Version: fix.FIX42, Acceptor: args[2], Initiator: sender}
		if sessions[id], err = s.Session(fix.Profile{ID: id}, fix.NewMemory(1<<20), fixtest.Desk{}); err != nil {
			return err
		}
	}
	fmt.Fprintln(out, "listening")
	return s.Run()
}
