package judge_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ordergrid/ordergrid/e2e/testgrid"
	"github.com/ordergrid/ordergrid/grid-node/access"
	"github.com/ordergrid/ordergrid/grid-node/arbiter"
	"github.com/ordergrid/ordergrid/grid-node/arbiter/kube"
	"github.com/ordergrid/ordergrid/grid-node/arbiter/memory"
	"github.com/ordergrid/ordergrid/grid-node/node"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/peerkey"
	"github.com/ordergrid/ordergrid/grid-node/secure"
	"github.com/ordergrid/ordergrid/internal/envtest"
	"github.com/ordergrid/ordergrid/internal/pki"
	"github.com/ordergrid/ordergrid/internal/proc"
)

func TestMain(m *testing.M) { os.Exit(envtest.Run(m, envtest.WithoutCRDs)) }

const audience = "ordergrid.dev"

// world is a node whose clients prove themselves to a real API server, and order-gateway before it.
type world struct {
	*testing.T
	dir        string
	files      secure.Files // of all of them
	said       proc.Tail
	addr, http string
}

func (w *world) write(name, text string) string {
	w.Helper()
	path := filepath.Join(w.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		w.Fatal(err)
	}
	return path
}

// node starts a grid of one node, which has tokens reviewed.
func (w *world) node(reviewer *kube.Tokens, rules string) (addr string) {
	w.Helper()
	id, err := secure.Load(w.files)
	if err != nil {
		w.Fatal(err)
	}
	addr = proc.PortForTest(w)
	store := memory.NewStore(map[string]arbiter.Spec{node.PartitionName("g", 0): {Grid: "g", Replicas: 1, MinInSync: 1, PreferredPod: "g-s0-0"}})
	n, err := node.New(node.Config{Grid: "g", Pod: "g-s0-0", Partitions: 1, Replicas: 1, Listen: addr, Advertise: addr, MemoryLimit: 256 << 20, PeerKeys: peerkey.Of(peerkey.New()),
		Arbiter: store, TLS: id, Access: &node.Access{Rules: access.Open(w.write("rules.json", rules)), Tokens: access.NewTokens(reviewer, audience, access.Limits{Fresh: 2 * time.Second, Refused: 100 * time.Millisecond})}})
	if err != nil {
		w.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- n.Run(ctx) }()
	w.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			w.Error(err)
		}
	})
	return addr
}

var (
	acceptsAt = regexp.MustCompile(`FIX sessions are accepted" address=(\S+)`)
	pagesAt   = regexp.MustCompile(`metrics and status are served" address=(\S+)`)
)

// gateway starts order-gateway.
func (w *world) gateway(args ...string) {
	w.Helper()
	cmd := exec.Command(testgrid.Program(w, "order-gateway"), append(args, "--http", "127.0.0.1:0", "--listen", "127.0.0.1:0")...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	lines := bufio.NewScanner(out)
	for w.addr == "" || w.http == "" {
		if !lines.Scan() {
			w.Fatalf("order-gateway accepts no sessions:\n%s", w.said.String())
		}
		fmt.Fprintln(&w.said, lines.Text())
		if m := acceptsAt.FindStringSubmatch(lines.Text()); m != nil {
			w.addr = m[1]
		}
		if m := pagesAt.FindStringSubmatch(lines.Text()); m != nil {
			w.http = m[1]
		}
	}
	go func() {
		for lines.Scan() {
			fmt.Fprintln(&w.said, lines.Text())
		}
	}()
}

// session is a connection of a counterparty.
type session struct {
	w   *world
	c   *tls.Conn
	in  *bufio.Reader
	seq int
}

// logon connects over TLS without a certificate, and logs on with a token.
func (w *world) logon(token string) (*session, string) {
	w.Helper()
	id, err := secure.Load(w.files)
	if err != nil {
		w.Fatal(err)
	}
	how := id.Client("127.0.0.1").Clone()
	how.Certificates, how.GetClientCertificate = nil, nil
	c, err := tls.Dial("tcp", w.addr, how)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	s := &session{w: w, c: c, in: bufio.NewReader(c)}
	s.send("A", "98=0|108=30|141=Y|554="+token+"|")
	return s, s.receive()
}

func (s *session) send(msgType, fields string) {
	s.w.Helper()
	s.seq++
	at := time.Now().UTC().Format("20060102-15:04:05.000")
	body := strings.ReplaceAll(fmt.Sprintf("35=%s|34=%d|49=BANK|52=%s|56=GRID|%s", msgType, s.seq, at, strings.ReplaceAll(fields, "NOW", at)), "|", "\x01")
	m := fmt.Appendf(nil, "8=FIX.4.4\x019=%d\x01%s", len(body), body)
	if _, err := s.c.Write(fmt.Appendf(m, "10=%03d\x01", order.CheckSum(m))); err != nil {
		s.w.Fatal(err)
	}
}

// receive returns the next message with | for SOH, "" at the end of the connection.
func (s *session) receive() (got string) {
	for !strings.Contains(got, "|10=") {
		field, err := s.in.ReadString(1)
		if err != nil {
			return ""
		}
		got += strings.TrimSuffix(field, "\x01") + "|"
	}
	return got
}

// status is the page of order-gateway.
func (w *world) status() string {
	w.Helper()
	resp, err := http.Get("http://" + w.http + "/status")
	if err != nil {
		w.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		w.Fatal(err)
	}
	return string(text)
}

// TestGridJudgesSessions: a FIX session logs on with a token that a real API server gave a service account, over TLS, and
// enters orders; that of another account, or of none, does not. When the account is deleted the session is logged out with
// the reason.
func TestGridJudgesSessions(t *testing.T) {
	cfg := envtest.Config(t)
	admin := envtest.Client(t, cfg)
	ns := envtest.Namespace(t, admin, "fix-")
	token := func(name, audience string) (*corev1.ServiceAccount, string) {
		sa := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}}
		if err := admin.Create(t.Context(), sa); err != nil {
			t.Fatal(err)
		}
		ask := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: []string{audience}}}
		if err := admin.SubResource("token").Create(t.Context(), sa, ask); err != nil {
			t.Fatal(err)
		}
		return sa, ask.Status.Token
	}
	account, right := token("bank", audience)
	_, fund := token("fund", audience)
	_, foreign := token("foreign", "https://kubernetes.default.svc")
	reviewer, err := kube.NewTokens(cfg, audience)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{T: t, dir: t.TempDir()}
	ca, err := pki.Load(w.dir, "test")
	if err != nil {
		t.Fatal(err)
	}
	f, err := ca.Save(w.dir, "gateway", pki.Identity{User: "gateway", Addrs: []netip.Addr{netip.MustParseAddr("127.0.0.1")}})
	if err != nil {
		t.Fatal(err)
	}
	w.files = secure.Files{Cert: f.Cert, Key: f.Key, CA: f.CA, ClientAuth: secure.NoClientCert}
	at := w.node(reviewer, fmt.Sprintf(`{"rules": [{"subjects": [{"kind": "User", "name": "gateway"}], "permissions": ["Submit", "Read", "Gateway"]},
		{"subjects": [{"kind": "ServiceAccount", "namespace": %q, "name": "bank"}, {"kind": "ServiceAccount", "namespace": %[1]q, "name": "fund"}], "permissions": ["Submit"]}]}`, ns))
	sessions := w.write("sessions.json", fmt.Sprintf(`{"sessions": [{"version": "FIX.4.4", "senderCompID": "BANK", "targetCompID": "GRID", "user": "system:serviceaccount:%s:bank"}]}`, ns))
	w.gateway("--endpoint", at, "--grid", "g", "--tls-cert", f.Cert, "--tls-key", f.Key, "--tls-ca", f.CA, "--sessions", sessions, "--fix-auth", "token", "--fix-grid-tokens",
		"--fix-tls-cert", f.Cert, "--fix-tls-key", f.Key, "--fix-tls-ca", f.CA, "--fix-tls-client-auth", "none", "--log-level", "debug")
	for _, c := range []struct{ token, want string }{{"guess", "the token is not known"}, {foreign, "the token is not known"}, {fund, `the token is of user \"system:serviceaccount:` + ns + `:fund\"`}} {
		if _, got := w.logon(c.token); got != "" {
			t.Fatalf("a wrong token: %q, want the end of the connection", got)
		}
		text := w.status()
		if !strings.Contains(strings.ReplaceAll(text, `\\`, `\`), c.want) || !strings.Contains(text, `"Credentials"`) {
			t.Errorf("status is %s, want %s", text, c.want)
		}
	}
	s, got := w.logon(right)
	if !strings.Contains(got, "|35=A|") {
		t.Fatalf("the right token: %q\n%s\n%s", got, w.status(), w.said.String())
	}
	s.send("D", "11=first|1=ACCT|55=INTC|54=1|60=NOW|38=500|40=2|44=21.35|59=0|")
	if got := s.receive(); !strings.Contains(got, "|39=0|") {
		t.Fatalf("an order: %q", got)
	}
	time.Sleep(5 * time.Second) // more than a judgement lasts
	s.send("1", "112=still|")
	if got := s.receive(); !strings.Contains(got, "|112=still|") {
		t.Fatalf("after the judgement was made again: %q", got)
	}
	if err := admin.Delete(t.Context(), account); err != nil {
		t.Fatal(err)
	}
	got = s.receive()
	for strings.Contains(got, "|35=0|") {
		got = s.receive()
	}
	if !strings.Contains(got, "|35=5|") || !strings.Contains(got, "|58=the grid takes the token of this session no more; log on with another one|") {
		t.Fatalf("after the account is deleted: %q, want a Logout\n%s", got, w.said.String())
	}
	if _, got := w.logon(right); got != "" {
		t.Errorf("its token afterwards: %q", got)
	}
	text := w.status() + w.said.String()
	for _, token := range []string{right, fund, foreign} {
		if strings.Contains(text, token[len(token)-24:]) || strings.Contains(text, token[:32]) {
			t.Error("a token stands in the log or in status")
		}
	}
}
