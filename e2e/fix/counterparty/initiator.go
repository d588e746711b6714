// Package counterparty is a real FIX engine on the other side of a session: quickfixgo's
// initiator.
package counterparty

import (
	"cmp"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/quickfixgo/quickfix"
)

// Initiator is an engine with one session. It reconnects every second.
type Initiator struct {
	id     quickfix.SessionID
	engine *quickfix.Initiator

	mu       sync.Mutex
	changed  *sync.Cond
	loggedOn bool
	logons   int
	reports  map[string][]string // ClOrdID to what each report about it was: ExecType
	refused  []string            // texts of other messages
	admin    []string            // MsgType and text of administrative messages
	rejects  []string            // texts of Reject messages
	o        Options
}

// Options of an Initiator.
type Options struct {
	BeginString, Sender, Target string
	Address                     string   // host:port
	Others                      []string // further ones, tried when the one before does not answer
	User, Password              string   // 553, 554; empty: without
	CA                          string   // PEM file; empty: without TLS
	Cert, Key                   string   // PEM files; empty: without a certificate
	Name                        string   // in the acceptor's certificate; empty: the host of Address
	Dictionary                  string   // XML file that messages are checked by; empty: they are not
	Transport                   string   // of FIXT 1.1: that of its session layer, beside Dictionary
	ResetOnLogon                bool     // both numbers begin at 1 with each logon
	// Report is called with each ExecutionReport: tags 11, 150 and 34. nil: it is not.
	Report func(clOrdID, execType, number string)
}

// Start starts an engine.
func Start(o Options) (*Initiator, error) {
	host, port, _ := strings.Cut(o.Address, ":")
	text := fmt.Sprintf(`[DEFAULT]
ConnectionType=initiator
SocketConnectHost=%s
SocketConnectPort=%s
HeartBtInt=5
ReconnectInterval=1
[SESSION]
BeginString=%s
SenderCompID=%s
TargetCompID=%s
`, host, port, o.BeginString, o.Sender, o.Target)
	for n, other := range o.Others {
		host, port, _ := strings.Cut(other, ":")
		text += fmt.Sprintf("SocketConnectHost%d=%s\nSocketConnectPort%d=%s\n", n+1, host, n+1, port)
	}
	if o.BeginString == "FIXT.1.1" {
		text += "DefaultApplVerID=9\n"
	}
	if o.CA != "" {
		text += "SocketUseSSL=Y\nSocketCAFile=" + o.CA + "\nSocketServerName=" + cmp.Or(o.Name, host) + "\n"
	}
	switch {
	case o.Dictionary == "":
	case o.Transport != "":
		text += "TransportDataDictionary=" + o.Transport + "\nAppDataDictionary=" + o.Dictionary + "\n"
	default:
		text += "DataDictionary=" + o.Dictionary + "\n"
	}
	if o.ResetOnLogon {
		text += "ResetOnLogon=Y\n"
	}
	if o.Cert != "" {
		text += "SocketCertificateFile=" + o.Cert + "\nSocketPrivateKeyFile=" + o.Key + "\n"
	}
	settings, err := quickfix.ParseSettings(strings.NewReader(text))
	if err != nil {
		return nil, err
	}
	i := &Initiator{id: quickfix.SessionID{BeginString: o.BeginString, SenderCompID: o.Sender, TargetCompID: o.Target}, reports: map[string][]string{}, o: o}
	i.changed = sync.NewCond(&i.mu)
	i.engine, err = quickfix.NewInitiator(i, quickfix.NewMemoryStoreFactory(), settings, quickfix.NewNullLogFactory())
	if err != nil {
		return nil, err
	}
	return i, i.engine.Start()
}

// Stop logs out and ends the engine.
func (i *Initiator) Stop() { i.engine.Stop() }

// Order sends a NewOrderSingle.
func (i *Initiator) Order(clOrdID, symbol string) error {
	return i.Send("D", map[int]string{11: clOrdID, 21: "1", 55: symbol, 54: "1", 38: "100", 40: "2", 44: "10.5"})
}

// Send sends a message with these fields, and TransactTime unless it asks for a status.
func (i *Initiator) Send(msgType string, fields map[int]string) error {
	m := quickfix.NewMessage()
	m.Header.SetString(35, msgType)
	for tag, value := range fields {
		m.Body.SetString(quickfix.Tag(tag), value)
	}
	if msgType != "H" {
		m.Body.SetString(60, time.Now().UTC().Format("20060102-15:04:05.000"))
	}
	return quickfix.SendToTarget(m, i.id)
}

// Wait waits until done, which may look at the initiator's reports, holds.
func (i *Initiator) Wait(within time.Duration, done func(s Seen) bool) error {
	late := time.AfterFunc(within, func() {
		i.mu.Lock()
		i.changed.Broadcast()
		i.mu.Unlock()
	})
	defer late.Stop()
	until := time.Now().Add(within)
	i.mu.Lock()
	defer i.mu.Unlock()
	for !done(i.seen()) {
		if time.Now().After(until) {
			return fmt.Errorf("not within %s: %+v", within, i.seen())
		}
		i.changed.Wait()
	}
	return nil
}

// Seen is what an engine has seen.
type Seen struct {
	LoggedOn bool
	Logons   int
	Reports  map[string][]string
	Refused  []string
	Admin    []string
	Rejects  []string
}

// Seen returns how the session is. Its reports are not to be read.
func (i *Initiator) Seen() Seen {
	i.mu.Lock()
	defer i.mu.Unlock()
	s := i.seen()
	s.Reports = nil
	return s
}

func (i *Initiator) seen() Seen {
	return Seen{LoggedOn: i.loggedOn, Logons: i.logons, Reports: i.reports, Refused: i.refused, Admin: i.admin, Rejects: i.rejects}
}

func (i *Initiator) change(f func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	f()
	i.changed.Broadcast()
}

// OnCreate implements quickfix.Application.
func (i *Initiator) OnCreate(quickfix.SessionID) {}

// OnLogon implements quickfix.Application.
func (i *Initiator) OnLogon(quickfix.SessionID) {
	i.change(func() { i.loggedOn, i.logons = true, i.logons+1 })
}

// OnLogout implements quickfix.Application.
func (i *Initiator) OnLogout(quickfix.SessionID) { i.change(func() { i.loggedOn = false }) }

// ToAdmin implements quickfix.Application.
func (i *Initiator) ToAdmin(m *quickfix.Message, _ quickfix.SessionID) {
	if t, _ := m.Header.GetString(35); t == "A" && i.o.User != "" {
		m.Body.SetString(553, i.o.User)
		m.Body.SetString(554, i.o.Password)
	}
}

// ToApp implements quickfix.Application.
func (i *Initiator) ToApp(*quickfix.Message, quickfix.SessionID) error { return nil }

// FromAdmin implements quickfix.Application.
func (i *Initiator) FromAdmin(m *quickfix.Message, _ quickfix.SessionID) quickfix.MessageRejectError {
	t, _ := m.Header.GetString(35)
	text, _ := m.Body.GetString(58)
	if t == "3" || text != "" {
		i.change(func() {
			i.admin = append(i.admin, t+" "+text)
			if t == "3" {
				i.rejects = append(i.rejects, text)
			}
		})
	}
	return nil
}

// FromApp implements quickfix.Application.
func (i *Initiator) FromApp(m *quickfix.Message, _ quickfix.SessionID) quickfix.MessageRejectError {
	t, _ := m.Header.GetString(35)
	id, _ := m.Body.GetString(11)
	exec, _ := m.Body.GetString(150)
	text, _ := m.Body.GetString(58)
	if number, _ := m.Header.GetString(34); t == "8" && i.o.Report != nil {
		i.o.Report(id, exec, number)
	}
	i.change(func() {
		if t == "8" {
			i.reports[id] = append(i.reports[id], exec)
		}
		if t != "8" || exec == "8" {
			i.refused = append(i.refused, t+" "+text)
		}
	})
	return nil
}
