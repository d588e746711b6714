package function

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/grid-node/function/examples"
	"github.com/ordergrid/ordergrid/grid-node/order"
)

// with returns the order of 305 bytes with some values changed.
func with(tb testing.TB, sets ...Set) *Order {
	tb.Helper()
	raw, err := Amend(nil, message(tb), sets)
	if err != nil {
		tb.Fatal(err)
	}
	var o order.Order
	if err := order.Parse(raw, &o); err != nil {
		tb.Fatalf("%q: %v", raw, err)
	}
	return &Order{Seq: 17, Time: 1_700_000_000_000_000_000, Raw: raw, Places: o.Places()}
}

func set(tag uint32, value string) Set { return Set{tag, []byte(value)} }

// TestFatFinger has the same for each language.
func TestFatFinger(t *testing.T) {
	for language, module := range map[string][]byte{"C": examples.FatFinger, "Rust": file(t, "examples/rust/fat-finger.wasm"),
		"AssemblyScript": file(t, "examples/assemblyscript/fat-finger.wasm")} {
		t.Run(language, func(t *testing.T) { fatFinger(t, module) })
	}
}

func file(t *testing.T, name string) []byte {
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func fatFinger(t *testing.T, module []byte) {
	i := load(t, module, Pre, Options{Config: []byte("quantity=1000\nvalue=50000\n")})
	for _, c := range []struct {
		quantity, price string
		want            string
	}{
		{"1000", "50", "accepted"},
		{"1000", "50.00000001", "3 fat-finger: value above the limit"},
		{"1001", "1", "3 fat-finger: quantity above the limit"},
		{"1", "50000.01", "3 fat-finger: value above the limit"},
		{"0.5", "50000", "accepted"},
		{"0.5", "50000.00000001", "3 fat-finger: value above the limit"},
		{"1000.00000001", "1", "3 fat-finger: quantity above the limit"},
		{"1000", "-50.5", "accepted"},
		{"92233720368.9", "1", "3 fat-finger: no quantity that can be checked"}, // does not fit
		{"10.000000001", "1", "3 fat-finger: no quantity that can be checked"},  // more than 8 places
		{"10", "99999999999", "3 fat-finger: no price that can be checked"},
	} {
		d := i.Decide(t.Context(), with(t, set(38, c.quantity), set(44, c.price)))
		got := "accepted"
		if d.Verdict == Refuse {
			got = fmt.Sprint(d.Reason, " ", string(d.Text))
		}
		if got != c.want || d.Fault != None {
			t.Errorf("%s at %s: %s, %v, want %s", c.quantity, c.price, got, i.Err(d.Fault), c.want)
		}
	}
	value := load(t, module, Pre, Options{Config: []byte("value=50000")}) // and any quantity
	for _, quantity := range []string{"92233720368", "92233720367.99999999", "50000.00000001"} {
		if d := value.Decide(t.Context(), with(t, set(38, quantity), set(44, "1"))); d.Verdict != Refuse {
			t.Errorf("%s at 1 with value=50000: %+v, %v, want it refused", quantity, d, value.Err(d.Fault))
		}
	}
	large := cat("8=FIX.4.4\x019=100\x01", strings.Replace(cancel, "38=100", "38=5000", 1), "10=000\x01")
	if !order.Seal(large) {
		t.Fatalf("%q", large)
	}
	if d := i.Decide(t.Context(), &Order{Raw: large, Parsed: parsed(t, large)}); d.Verdict != Accept || d.Fault != None {
		t.Errorf("a cancel of 5000: %+v, %v, want it accepted", d, i.Err(d.Fault))
	}
	for _, config := range []string{"quantity=1e3", "price=3", "quantity=99999999999", "quantity=", "quantity=1000x"} {
		if m, err := Load(t.Context(), module, Pre, Options{Config: []byte(config)}); err == nil {
			_ = m.Close(t.Context())
			t.Errorf("configuration %q was accepted", config)
		}
	}
}

func TestRestrictedList(t *testing.T) {
	var list strings.Builder
	for n := range 2000 {
		fmt.Fprintf(&list, "SYM%d\n", 2*n)
	}
	i := load(t, examples.RestrictedList, Pre, Options{Config: []byte(list.String()), Fuel: 5_000_000})
	for n := range 200 {
		d := i.Decide(t.Context(), with(t, set(55, fmt.Sprint("SYM", n))))
		if d.Fault != None || (d.Verdict == Refuse) != (n%2 == 0) {
			t.Errorf("SYM%d: %+v", n, d)
		}
	}
}

func TestEnrichClient(t *testing.T) {
	opts := Options{Config: []byte("ACC1=delta one\nACC22=rates\n"), Tags: []uint32{10001}}
	i := load(t, examples.EnrichClient, Pre, opts)
	for account, want := range map[string]string{"ACC1": "delta one", "ACC22": "rates", "ACC": "", "ACC2": ""} {
		o := with(t, set(1, account))
		d := i.Decide(t.Context(), o)
		raw, err := Amend(nil, o.Raw, d.Sets)
		if err != nil || d.Fault != None || string(order.TagValue(raw, 10001)) != want {
			t.Errorf("%s: %+v, %v, %q", account, d, err, raw)
		}
		var parsed order.Order
		if err := order.Parse(raw, &parsed); err != nil {
			t.Errorf("%s: %v", account, err)
		}
	}
	opts.Tags = []uint32{10002}
	if d := load(t, examples.EnrichClient, Pre, opts).Decide(t.Context(), with(t, set(1, "ACC1"))); d.Fault != BadResult {
		t.Errorf("a tag that was not granted: %+v", d)
	}
}

// TestAuditTrail makes records, on two copies of which one came in halfway by the other's
// state, and replays them in Go.
func TestAuditTrail(t *testing.T) {
	a := load(t, examples.AuditTrail, Post, Options{Fuel: 1_000_000})
	b := load(t, examples.AuditTrail, Post, Options{Fuel: 1_000_000, Interpret: true})
	hash := make([]byte, 32)
	for seq := range uint64(40) {
		o := with(t, set(38, fmt.Sprint(100+seq)), set(58, strings.Repeat("x", int(1+seq*7))))
		o.Seq, o.Time = seq, int64(seq*1000)
		got, fault := a.Record(t.Context(), o)
		if fault != None {
			t.Fatal(a.Err(fault))
		}
		want := binary.LittleEndian.AppendUint64(nil, seq)
		want = binary.LittleEndian.AppendUint64(want, seq*1000)
		sum := sha256.Sum256(append(append(append([]byte{}, hash...), want...), o.Raw...))
		hash = append(hash[:0], sum[:]...)
		if want = append(want, hash...); !bytes.Equal(got, want) {
			t.Fatalf("entry %d: record %x, want %x", seq, got, want)
		}
		if seq == 0 {
			t.Logf("%d bytes take fuel %d", len(o.Raw), a.Used())
		}
		if seq == 20 {
			if err := b.Restore(a.AppendState(nil)); err != nil {
				t.Fatal(err)
			}
		} else if seq > 20 {
			if other, fault := b.Record(t.Context(), o); fault != None || !bytes.Equal(other, want) || a.Digest() != b.Digest() || a.Used() != b.Used() {
				t.Fatalf("entry %d: the other copy has %x, %v, fuel %d and %d", seq, other, fault, a.Used(), b.Used())
			}
		}
	}
}

// TestExamplesAreBuiltFromTheirSource builds each module again and compares every byte.
func TestExamplesAreBuiltFromTheirSource(t *testing.T) {
	for _, l := range []struct {
		name, script, require string
		programs              []string
		from                  string // where they come from
		modules               map[string]string
	}{
		{"C", "examples/c/build.sh", "ORDERGRID_REQUIRE_CLANG", []string{"clang-14", "wasm-ld-14"}, "Debian: clang-14, lld-14", map[string]string{
			"examples/c/fat-finger.c": "examples/fat-finger.wasm", "examples/c/restricted-list.c": "examples/restricted-list.wasm",
			"examples/c/enrich-client.c": "examples/enrich-client.wasm", "examples/c/audit-trail.c": "examples/audit-trail.wasm",
			"examples/c/count-accounts.c": "examples/count-accounts.wasm", "examples/c/add.c": "examples/add.wasm",
			"examples/c/primes.c": "examples/primes.wasm", "examples/c/notional.c": "examples/notional.wasm",
			"testdata/compute.c": "testdata/compute.wasm", "testdata/parse.c": "testdata/parse.wasm",
		}},
		{"Rust", "examples/rust/build.sh", "ORDERGRID_REQUIRE_RUST", []string{"/usr/lib/rustlib/wasm32-unknown-unknown", "wasm-ld-14"},
			"Debian 12: rustc, libstd-rust-dev-wasm32, lld-14", map[string]string{"examples/rust/examples/fat-finger.rs": "examples/rust/fat-finger.wasm"}},
		{"AssemblyScript", "examples/assemblyscript/build.sh", "ORDERGRID_REQUIRE_ASC", []string{cmp.Or(os.Getenv("ASC"), "asc")},
			"npm: assemblyscript@0.28.20", map[string]string{"examples/assemblyscript/fat-finger.ts": "examples/assemblyscript/fat-finger.wasm"}},
	} {
		t.Run(l.name, func(t *testing.T) {
			for _, program := range l.programs {
				_, err := exec.LookPath(program)
				if filepath.IsAbs(program) {
					_, err = os.Stat(program)
				}
				if err != nil && os.Getenv(l.require) == "" {
					t.Skipf("%s is not here (%s)", program, l.from)
				}
			}
			for source, module := range l.modules {
				out := filepath.Join(t.TempDir(), "out.wasm")
				if text, err := exec.CommandContext(t.Context(), l.script, source, out).CombinedOutput(); err != nil {
					t.Fatalf("%s: %v\n%s", source, err, text)
				}
				if got, want := file(t, out), file(t, module); !bytes.Equal(got, want) {
					t.Errorf("%s: %d bytes, the module here has %d and others", source, len(got), len(want))
				}
			}
		})
	}
}

// TestFunctionOfThePage: the function that docs/functions.md begins with is built as the page says, from another folder, and
// does what it says.
func TestFunctionOfThePage(t *testing.T) {
	for _, program := range []string{"clang-14", "wasm-ld-14"} {
		if _, err := exec.LookPath(program); err != nil && os.Getenv("ORDERGRID_REQUIRE_CLANG") == "" {
			t.Skipf("%s is not here (Debian: clang-14, lld-14)", program)
		}
	}
	_, rest, begun := strings.Cut(string(file(t, "../../docs/functions.md")), "```c\n")
	source, _, ended := strings.Cut(rest, "```")
	if !begun || !ended {
		t.Fatal("docs/functions.md has no C")
	}
	dir := t.TempDir()
	c, wasm := filepath.Join(dir, "limit.c"), filepath.Join(dir, "limit.wasm")
	if err := os.WriteFile(c, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	if text, err := exec.CommandContext(t.Context(), "examples/c/build.sh", c, wasm).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	i := load(t, file(t, wasm), Pre, Options{})
	for quantity, refused := range map[string]bool{"1000000": false, "1000001": true} {
		d := i.Decide(t.Context(), with(t, set(38, quantity)))
		if d.Fault != None || (d.Verdict == Refuse) != refused || refused && (d.Reason != 3 || string(d.Text) != "more than a million") {
			t.Errorf("an order of %s: %+v, want it refused: %v", quantity, d, refused)
		}
	}
}

func TestAmendRefusesTheEnvelope(t *testing.T) {
	for _, tag := range []uint32{8, 9, 10, 11, 34, 35, 49, 52, 56, 95, 96, 453, 448, 354} {
		if _, err := Amend(nil, message(t), []Set{set(tag, "1")}); err == nil {
			t.Errorf("tag %d was set", tag)
		}
	}
	for _, raw := range []string{"", "8=FIX.4.4", "8=FIX.4.4\x019=", "8=FIX.4.4\x019=5\x0110=000\x01"} {
		if out, err := Amend(nil, []byte(raw), []Set{set(1, "A")}); err == nil && len(raw) < 20 {
			t.Errorf("%q became %q", raw, out)
		}
	}
}

// TestExampleManifestsHaveTheDigests: what docs/examples/functions deploys is what is there.
func TestExampleManifestsHaveTheDigests(t *testing.T) {
	for manifest, files := range map[string]map[string][]byte{
		"functions.yaml": {"fat-finger.wasm": examples.FatFinger, "enrich-client.wasm": examples.EnrichClient,
			"limits.txt": []byte("quantity=1000000\nvalue=50000000\n"), "desks.txt": []byte("ACCT-0042=DESK-7\n")},
		"compute.yaml": {"add.wasm": examples.Add},
		"audit.yaml":   {"audit-trail.wasm": examples.AuditTrail, "count-accounts.wasm": examples.CountAccounts},
	} {
		b, err := os.ReadFile("../../docs/examples/functions/" + manifest)
		if err != nil {
			t.Fatal(err)
		}
		for name, content := range files {
			if want := fmt.Sprintf("key: %s}, sha256: \"%x\"", name, sha256.Sum256(content)); !strings.Contains(string(b), want) {
				t.Errorf("%s has not %s", manifest, want)
			}
		}
	}
}
