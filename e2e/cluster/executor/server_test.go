package executor

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/controllers/failoverdrill/executor"
)

// clumsy hands fail on request, to test the server.
type clumsy struct {
	mu              sync.Mutex
	injectErr       error
	recoverFailures int // tries that fail
	recovered       int
	adoptErr        error
	offerFailures   int
}

func (c *clumsy) Offers(context.Context) ([]executor.Offer, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.offerFailures > 0 {
		c.offerFailures--
		return nil, errors.New("the nodes are unknown")
	}
	return []executor.Offer{{Type: executor.NodePowerOff, Nodes: []string{"n1", "n2"}, MaxDeadlineSeconds: 100}}, nil
}

func (c *clumsy) Conflict(a, b *executor.Fault) string { return (&Machines{}).Conflict(a, b) }

func (c *clumsy) Inject(_ context.Context, job *Job) (string, error) {
	job.Notes["seen"] = "yes"
	return "done", c.injectErr
}

func (c *clumsy) Adopt(_ context.Context, job *Job) error {
	if job.Notes["seen"] != "yes" {
		return errors.New("the notes are lost")
	}
	return c.adoptErr
}

func (c *clumsy) Recover(context.Context, *Job) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.recoverFailures > 0 {
		c.recoverFailures--
		return errors.New("the power switch is stuck")
	}
	c.recovered++
	return nil
}

func (c *clumsy) Look(context.Context, *Job) (executor.Witness, error) {
	return executor.Witness{}, errors.New("nothing to be seen")
}

func (c *clumsy) Close() {}

func serveClumsy(t *testing.T, dir string, hands *clumsy) (*served, *executor.Client) {
	t.Helper()
	s := serve(t, func() Options {
		return Options{Name: "clumsy", Dir: dir, Token: "secret", Hands: []Hands{hands}, Say: func(string, ...any) {}}
	})
	client, err := executor.NewClient("http://"+s.addr, "secret", nil)
	if err != nil {
		t.Fatal(err)
	}
	return s, client
}

func powerOff(node string) *executor.Fault {
	return &executor.Fault{Type: executor.NodePowerOff, Nodes: []string{node}, DeadlineSeconds: 60}
}

func wait(t *testing.T, client *executor.Client, id string, want executor.State) *executor.Status {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		status, err := client.Get(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if status.State == want {
			return status
		}
		if time.Now().After(deadline) {
			t.Fatalf("it is %+v, want %s", status, want)
		}
	}
}

// TestFailedInjection leaves nothing behind.
func TestFailedInjection(t *testing.T) {
	hands := &clumsy{injectErr: errors.New("no such switch"), recoverFailures: 1}
	_, client := serveClumsy(t, t.TempDir(), hands)
	if _, err := client.Put(t.Context(), "a", powerOff("n1")); err != nil {
		t.Fatal(err)
	}
	status := wait(t, client, "a", executor.Failed)
	if status.Message != "no such switch" || hands.recovered != 1 || status.Injected != nil {
		t.Errorf("%+v; taken back %d times", status, hands.recovered)
	}
}

// TestRecoveryIsRepeated until it works, and reports why not until then.
func TestRecoveryIsRepeated(t *testing.T) {
	_, client := serveClumsy(t, t.TempDir(), &clumsy{recoverFailures: 1})
	if _, err := client.Put(t.Context(), "a", powerOff("n1")); err != nil {
		t.Fatal(err)
	}
	status, err := client.Delete(t.Context(), "a")
	if err != nil || status.State != executor.Recovered && !strings.Contains(status.Message, "stuck") {
		t.Errorf("%+v, %v", status, err)
	}
	wait(t, client, "a", executor.Recovered)
}

func TestConflicts(t *testing.T) {
	_, client := serveClumsy(t, t.TempDir(), &clumsy{})
	if _, err := client.Put(t.Context(), "a", powerOff("n1")); err != nil {
		t.Fatal(err)
	}
	var refused *executor.Error
	if _, err := client.Put(t.Context(), "b", powerOff("n1")); !errors.As(err, &refused) || refused.Code != 409 || !strings.Contains(refused.Message, "fault a") {
		t.Errorf("the same node twice: %v", err)
	}
	if _, err := client.Put(t.Context(), "c", powerOff("n3")); !errors.As(err, &refused) || refused.Field != "nodes[0]" {
		t.Errorf("a node that is none: %v", err)
	}
	long := powerOff("n2")
	long.DeadlineSeconds = 101
	if _, err := client.Put(t.Context(), "d", long); !errors.As(err, &refused) || refused.Field != "deadlineSeconds" {
		t.Errorf("a deadline beyond the offer: %v", err)
	}
	if _, err := client.Put(t.Context(), "e", powerOff("n2")); err != nil {
		t.Errorf("another node: %v", err)
	}
}

// TestRestarts covers each state a process can die in.
func TestRestarts(t *testing.T) {
	for _, c := range []struct {
		name  string
		died  executor.State
		adopt error
		blind int // times the cluster cannot be looked at
		ends  executor.State
	}{
		{"while injecting", executor.Injecting, nil, 0, executor.Failed},
		{"injected", executor.Injected, nil, 0, executor.Injected},
		{"injected, and gone since", executor.Injected, errors.New("the pod is gone"), 0, executor.Recovered},
		{"while recovering", executor.Recovering, nil, 0, executor.Recovered},
		{"while recovering, and the cluster cannot be seen", executor.Recovering, nil, 1, executor.Recovered},
		{"over", executor.Recovered, nil, 0, executor.Recovered},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			b, err := openBook(dir)
			if err != nil {
				t.Fatal(err)
			}
			deadline := time.Now().Add(time.Minute)
			e := &entry{Fault: *powerOff("n1"), Notes: map[string]string{"seen": "yes"},
				Status: executor.Status{ID: "a", Type: executor.NodePowerOff, State: c.died, Deadline: &deadline}}
			if _, err := b.add("a", e); err != nil {
				t.Fatal(err)
			}
			hands := &clumsy{adoptErr: c.adopt, offerFailures: c.blind}
			_, client := serveClumsy(t, dir, hands)
			wait(t, client, "a", c.ends)
			if _, err := client.Delete(t.Context(), "a"); err != nil {
				t.Fatal(err)
			}
			if wantTaken := c.died != executor.Recovered; (hands.recovered == 1) != wantTaken {
				t.Errorf("taken back %d times", hands.recovered)
			}
		})
	}
}

func TestBook(t *testing.T) {
	dir := t.TempDir()
	b, err := openBook(dir)
	if err != nil {
		t.Fatal(err)
	}
	for i := range rememberMost + 50 {
		at := time.Now().Add(time.Duration(i) * time.Second)
		id := "f-" + strings.Repeat("x", i%3) + time.Duration(i).String()
		b.entries[id] = &entry{Status: executor.Status{ID: id, State: executor.Recovered, Recovered: &at}}
	}
	old := time.Now().Add(-2 * rememberFor)
	b.entries["old"] = &entry{Status: executor.Status{ID: "old", State: executor.Recovered, Recovered: &old}}
	if _, err := b.add("new", &entry{Status: executor.Status{ID: "new", State: executor.Injecting}}); err != nil {
		t.Fatal(err)
	}
	if len(b.entries) != rememberMost || b.entries["old"] != nil || b.entries["new"] == nil {
		t.Errorf("%d faults are remembered", len(b.entries))
	}
	if err := os.WriteFile(filepath.Join(dir, "faults.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := openBook(dir); err == nil || !strings.Contains(err.Error(), "faults.json") {
		t.Errorf("a damaged book: %v", err)
	}
}
