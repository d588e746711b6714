// Package script runs QuickFIX's acceptance scripts (.def files), which quickfixgo's
// module has, against an acceptor. A script is a counterparty: lines with I are sent, with
// E expected; i and e connect, disconnect, and wait for that.
package script

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Acceptor is what scripts are run against: over a socket, or in a world with a clock of
// its own.
type Acceptor interface {
	Now() time.Time
	// Connect opens connection n.
	Connect(n int) error
	// Disconnect closes it.
	Disconnect(n int)
	// Write sends bytes.
	Write(n int, b []byte) error
	// Read returns the next message, an error if the connection ended or none came in
	// time.
	Read(n int, within time.Duration) ([]byte, error)
	// Ended waits for the end of the connection; bytes that come before it are an error.
	Ended(n int, within time.Duration) error
	// Set sets the numbers of the session that a line SET_SESSION names.
	Set(key string, value uint64) error
}

// patience is how long the scripts wait, as in QuickFIX's runner.
const patience = 10 * time.Second

// Run runs a script and returns what went wrong in which line.
func Run(path string, a Acceptor) error {
	raw, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	for i, line := range strings.Split(string(raw), "\n") {
		line = strings.TrimRight(line, "\r")
		if line == "" || line[0] == '#' {
			continue
		}
		if err := step(line, a); err != nil {
			return fmt.Errorf("line %d: %w", i+1, err)
		}
	}
	return nil
}

var numbered = regexp.MustCompile(`^[IEie](\d),`)

func step(line string, a Acceptor) error {
	n, rest := 1, line[1:]
	if m := numbered.FindStringSubmatch(line); m != nil {
		n, _ = strconv.Atoi(m[1])
		rest = line[3:]
	}
	switch line[0] {
	case 'I':
		return a.Write(n, seal([]byte(times(rest, a.Now()))))
	case 'E':
		// A heartbeat may be due in a longer time than the scripts wait for a connection.
		got, err := a.Read(n, 4*patience)
		if err != nil {
			return fmt.Errorf("expected %s: %w", show([]byte(rest)), err)
		}
		return compare(seal([]byte(times(rest, a.Now()))), got)
	case 'i', 'e':
		return event(line[0], n, rest, a)
	}
	return fmt.Errorf("%q: a line begins with I, E, i, e or #", line)
}

func event(kind byte, n int, what string, a Acceptor) error {
	switch {
	case kind == 'i' && what == "CONNECT":
		return a.Connect(n)
	case kind == 'i' && what == "DISCONNECT":
		a.Disconnect(n)
		return nil
	case kind == 'e' && what == "DISCONNECT":
		return a.Ended(n, patience)
	case kind == 'i' && strings.HasPrefix(what, "SET_SESSION "):
		words := strings.Fields(what)
		if len(words) == 3 {
			key, value, _ := strings.Cut(words[2], "=")
			if v, err := strconv.ParseUint(value, 10, 63); err == nil {
				return a.Set(key, v)
			}
		}
	}
	return fmt.Errorf("%c%s: CONNECT, DISCONNECT or SET_SESSION", kind, what)
}

var timeMark = regexp.MustCompile(`<TIME([+-]\d+)?>`)

// times replaces <TIME>, <TIME+s> and <TIME-s>.
func times(s string, now time.Time) string {
	return timeMark.ReplaceAllStringFunc(s, func(mark string) string {
		seconds, _ := strconv.Atoi(timeMark.FindStringSubmatch(mark)[1])
		return now.Add(time.Duration(seconds) * time.Second).UTC().Format("20060102-15:04:05")
	})
}

var (
	headMark = regexp.MustCompile("^8=.*?\x01")
	lenMark  = regexp.MustCompile("\x019=.*?\x01")
	sumMark  = regexp.MustCompile("\x0110=.*\x01$")
)

// seal adds BodyLength and CheckSum where a script leaves them out.
func seal(m []byte) []byte {
	head := headMark.Find(m)
	if head == nil {
		return m
	}
	rest := m[len(head):]
	if !lenMark.Match(m) {
		body := rest
		if loc := sumMark.FindIndex(m); loc != nil {
			body = m[len(head) : loc[0]+1]
		}
		rest = append(fmt.Appendf(nil, "9=%d\x01", len(body)), rest...)
	}
	m = append(append([]byte(nil), head...), rest...)
	if !sumMark.Match(m) {
		m = fmt.Appendf(m, "10=%03d\x01", sum(m))
	}
	return m
}

func sum(b []byte) (s byte) {
	for _, c := range b {
		s += c
	}
	return s
}

// patterns are those of fields.fmt: values that differ from run to run.
var patterns = map[string]*regexp.Regexp{
	"10": regexp.MustCompile(`^\d{3}$`), "42": stampMark, "52": stampMark, "60": stampMark, "122": stampMark,
}

var stampMark = regexp.MustCompile(`^\d{8}-\d{2}:\d{2}:\d{2}([.]\d{3})?$`)

// compare compares field by field, as QuickFIX's runner does, with one exception and one
// addition. Text (58) has to begin with what the script has, and may go on with ": " or
// "; " and what was at fault; BodyLength (9) then differs by that. BodyLength and CheckSum
// of what was received have to be right in any case.
func compare(want, got []byte) error {
	if err := sound(got); err != nil {
		return fmt.Errorf("%w: %s", err, show(got))
	}
	w, g := fields(want), fields(got)
	fault := func(format string, args ...any) error {
		return fmt.Errorf("%s\n  expected %s\n  received %s", fmt.Sprintf(format, args...), show(want), show(got))
	}
	if len(w) != len(g) {
		return fault("%d fields, expected %d", len(g), len(w))
	}
	longer := false
	for i := range w {
		longer = longer || w[i].tag == "58" && g[i].value != w[i].value
	}
	for i := range w {
		p := patterns[w[i].tag]
		switch {
		case w[i].tag != g[i].tag:
			return fault("tag %s, expected %s", g[i].tag, w[i].tag)
		case p != nil:
			if !p.MatchString(g[i].value) {
				return fault("tag %s is %q, expected %s", g[i].tag, g[i].value, p)
			}
		case w[i].value == g[i].value, w[i].tag == "9" && longer:
		case w[i].tag == "58" && (strings.HasPrefix(g[i].value, w[i].value+": ") || strings.HasPrefix(g[i].value, w[i].value+"; ")):
		default:
			return fault("tag %s is %q, expected %q", g[i].tag, g[i].value, w[i].value)
		}
	}
	return nil
}

// sound checks BodyLength and CheckSum.
func sound(m []byte) error {
	f := fields(m)
	end := bytes.LastIndex(m, []byte("\x0110="))
	if len(f) < 4 || f[0].tag != "8" || f[1].tag != "9" || end < 0 {
		return fmt.Errorf("it does not begin with tags 8 and 9, or not end with 10")
	}
	length := end + 1 - len("8=") - len(f[0].value) - 1 - len("9=") - len(f[1].value) - 1
	if f[1].value != strconv.Itoa(length) {
		return fmt.Errorf("BodyLength is %s, expected %d", f[1].value, length)
	}
	if want := fmt.Sprintf("%03d", sum(m[:end+1])); f[len(f)-1].value != want {
		return fmt.Errorf("CheckSum is %s, expected %s", f[len(f)-1].value, want)
	}
	return nil
}

type field struct{ tag, value string }

func fields(m []byte) (list []field) {
	for _, f := range strings.Split(strings.TrimSuffix(string(m), "\x01"), "\x01") {
		tag, value, _ := strings.Cut(f, "=")
		list = append(list, field{tag, value})
	}
	return list
}

func show(m []byte) string { return strings.ReplaceAll(string(m), "\x01", "|") }

// Cut returns the first message of b and what follows it; nil if there is none yet.
func Cut(b []byte) (m, rest []byte) {
	at := bytes.Index(b, []byte("\x0110="))
	if at < 0 {
		return nil, b
	}
	end := bytes.IndexByte(b[at+1:], 1)
	if end < 0 {
		return nil, b
	}
	return b[:at+end+2], b[at+end+2:]
}
