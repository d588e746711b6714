package acceptors

import (
	"fmt"
	"io"
	"net"

	"github.com/ordergrid/ordergrid/gateway/fix"
	"github.com/ordergrid/ordergrid/gateway/fix/acceptor"
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
		if sessions[id], err = s.Session(fix.Profile{ID: id}, fix.NewMemory(1<<20), desk{}); err != nil {
			return err
		}
	}
	fmt.Fprintln(out, "listening")
	return s.Run()
}

// desk reports each order as new.
type desk struct{}

func (desk) LoggedOn(*fix.Session)         {}
func (desk) LoggedOut(*fix.Session, error) {}
func (desk) Takes([]byte) bool             { return false }

func (desk) NewOrder(s *fix.Session, o *fix.NewOrderSingle) *fix.Refusal {
	now := o.Message.Now()
	s.Report(now, &fix.ExecutionReport{
		ReportedOrder: fix.ReportedOrder{OrderID: o.ClOrdID, ClOrdID: o.ClOrdID, Symbol: o.Symbol, Side: o.Side},
		ExecID:        o.ClOrdID, ExecType: '0', OrdStatus: '0', OrderQty: o.OrderQty, LeavesQty: o.OrderQty, TransactNs: now.Wall,
	})
	return nil
}

func (desk) Cancel(*fix.Session, *fix.CancelRequest) *fix.Refusal         { return nil }
func (desk) Replace(*fix.Session, *fix.ReplaceRequest) *fix.Refusal       { return nil }
func (desk) Status(*fix.Session, *fix.StatusRequest) *fix.Refusal         { return nil }
func (desk) MassCancel(*fix.Session, *fix.MassCancelRequest) *fix.Refusal { return nil }
func (desk) Other(*fix.Session, *fix.Message) *fix.Refusal                { return nil }
