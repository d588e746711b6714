package failoverdrill

import (
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/ordergrid/ordergrid/controllers/certificates"
	"github.com/ordergrid/ordergrid/internal/pki"
	recorder "github.com/ordergrid/ordergrid/probe/drill/api"
	"github.com/ordergrid/ordergrid/probe/drill/certificate"
)

// fakeRecorder answers like a recorder whose grid recovers a second after each fault.
type fakeRecorder struct {
	b         *bench
	url       string
	mu        sync.Mutex
	token     string // expected; empty: the first one counts
	phase     recorder.Phase
	disturbed time.Time
	noCopies  bool // the grid does not become redundant
	steps     map[int]*recorder.Record
	reported  []string
	finish    *recorder.Finish
}

func newFakeRecorder(b *bench) *fakeRecorder {
	f := &fakeRecorder{b: b, phase: recorder.Running, steps: map[int]*recorder.Record{}, disturbed: b.clock.Now()}
	srv := httptest.NewUnstartedServer(f)
	srv.TLS = &tls.Config{GetCertificate: f.identity}
	srv.StartTLS()
	b.t.Cleanup(srv.Close)
	f.url = srv.URL
	return f
}

// identity is that of the recorder of any drill.
func (f *fakeRecorder) identity(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	key, err := f.b.rec.Keys.Key(hello.Context())
	if err != nil {
		return nil, err
	}
	id, err := issue(key, pki.Identity{Names: []string{hello.ServerName}})
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(id[certificates.KeyCert], id[certificates.KeyKey])
	return &pair, err
}

func (f *fakeRecorder) disturb() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.disturbed = f.b.clock.Now()
}

func (f *fakeRecorder) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

// again is the recorder of another drill.
func (f *fakeRecorder) again() {
	f.token, f.phase, f.steps, f.reported, f.finish = "", recorder.Running, map[int]*recorder.Record{}, nil, nil
}

const comesBack = time.Second

func (f *fakeRecorder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	token := r.Header.Get("Authorization")
	if f.token == "" {
		f.token = token
	}
	if token != f.token || token == "Bearer " {
		http.Error(w, "wrong token", http.StatusUnauthorized)
		return
	}
	now := f.b.clock.Now()
	calm := max(now.Sub(f.disturbed)-comesBack, 0)
	switch {
	case r.URL.Path == recorder.PathState:
		s := recorder.State{Phase: f.phase, Now: now, Partitions: []string{"p0", "p1"}, Redundant: calm > 0 && !f.noCopies, GapLimit: 100 * time.Millisecond, P99: time.Millisecond}
		if s.Redundant {
			s.Calm = calm
		} else {
			s.Missing = "p0 has 1 copy in sync, wanted 2"
		}
		if f.phase == recorder.Finishing {
			f.phase = recorder.Done
		}
		answer(w, s)
	case strings.HasPrefix(r.URL.Path, recorder.PathSteps):
		f.step(w, r, now, calm)
	case r.URL.Path == recorder.PathFinish:
		f.finish = &recorder.Finish{}
		if err := json.NewDecoder(r.Body).Decode(f.finish); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		f.phase = recorder.Finishing
		w.WriteHeader(http.StatusAccepted)
	case r.URL.Path == recorder.PathCertificate:
		_, _ = w.Write(f.certificate())
	case r.URL.Path == recorder.PathText:
		_, _ = w.Write([]byte("LOSS CERTIFICATE\n"))
	case r.URL.Path == recorder.PathDigests:
		sum := sha256.Sum256(f.certificate())
		answer(w, recorder.Digests{Certificate: hex.EncodeToString(sum[:]), History: strings.Repeat("0", 64)})
	default:
		http.NotFound(w, r)
	}
}

func (f *fakeRecorder) step(w http.ResponseWriter, r *http.Request, now time.Time, calm time.Duration) {
	number, event, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, recorder.PathSteps), "/")
	index, err := strconv.Atoi(number)
	if err != nil {
		http.NotFound(w, r)
		return
	}
	rec := f.steps[index]
	if rec == nil {
		if r.Method != http.MethodPut {
			http.NotFound(w, r)
			return
		}
		rec = &recorder.Record{Index: index, From: now}
		f.steps[index] = rec
		_ = json.NewDecoder(r.Body).Decode(&rec.Step)
		f.reported = append(f.reported, fmt.Sprintf("%d begin %s", index, rec.What))
	}
	if event != "" {
		var n recorder.Note
		_ = json.NewDecoder(r.Body).Decode(&n)
		f.reported = append(f.reported, fmt.Sprintf("%d %s %s", index, event, n.Witness.State))
		rec.Witness = n.Witness
		switch recorder.Event(event) {
		case recorder.Injected:
			rec.Injected = now
		case recorder.Recovered:
			rec.Recovered = now
		case recorder.Abandoned:
			rec.Failed, rec.Over = n.Message, true
		}
	}
	if rec.Served.IsZero() && calm > 0 && !rec.Injected.IsZero() {
		rec.Served = rec.Injected.Add(300 * time.Millisecond)
	}
	if rec.Redundant.IsZero() && calm > 0 && !rec.Recovered.IsZero() && !f.noCopies {
		rec.Redundant = now
	}
	rec.Over = rec.Over || !rec.Served.IsZero() && !rec.Redundant.IsZero()
	rec.WorstGap, rec.P99, rec.Now = 250*time.Millisecond, 2*time.Millisecond, now
	answer(w, rec)
}

func (f *fakeRecorder) certificate() []byte {
	c := certificate.Certificate{Schema: certificate.Schema, Verdict: certificate.Pass}
	c.Orders.Created, c.Orders.Acknowledged = 1000, 999
	c.Outage.N, c.Outage.P50, c.Outage.P99, c.Outage.Max = len(f.steps), 250*time.Millisecond, 260*time.Millisecond, 270*time.Millisecond
	c.Control.Result = certificate.ControlPassed
	for i := range len(f.steps) {
		rec := f.steps[i]
		if rec == nil {
			continue
		}
		s := certificate.Step{Index: i, Fault: rec.Fault, Type: rec.Type, Witness: rec.Witness, Outage: 251 * time.Millisecond, Outcome: certificate.StepPassed}
		if rec.Failed != "" || rec.Witness.State != recorder.Seen {
			c.Verdict, c.Reasons = certificate.Invalid, []string{"a fault did not hit"}
		}
		c.Steps = append(c.Steps, s)
	}
	if f.finish != nil && f.finish.Aborted != "" {
		c.Verdict, c.Reasons = certificate.Invalid, []string{f.finish.Aborted}
	}
	text, _ := json.Marshal(c)
	return text
}

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}
