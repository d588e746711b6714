package certificate

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ordergrid/ordergrid/internal/version"
	"github.com/ordergrid/ordergrid/probe/drill/history"
)

// Files of a drill's directory. SumsFile is in the format of sha256sum, which
// checks it.
const (
	HistoryFile = "history.gz"
	JSONFile    = "certificate.json"
	TextFile    = "certificate.txt"
	PageFile    = "certificate.html"
	SumsFile    = "SHA256SUMS"
)

// Render makes the canonical bytes, the text and the page.
func Render(c *Certificate) (canonical, text, html []byte, err error) {
	if canonical, err = c.Canonical(); err != nil {
		return nil, nil, nil, err
	}
	var b bytes.Buffer
	if err := c.WriteText(&b); err != nil {
		return nil, nil, nil, err
	}
	fmt.Fprintf(&b, "certificate sha256 %s\n", Sum(canonical))
	html, err = c.page()
	return canonical, b.Bytes(), html, err
}

// Canonical are the bytes of the certificate's check sum: indented JSON with the fields in their
// order, and a new line.
func (c *Certificate) Canonical() ([]byte, error) {
	b, err := json.MarshalIndent(c, "", "  ")
	return append(b, '\n'), err
}

// Sum is a SHA-256 in hex.
func Sum(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// Write stores a certificate beside the history in dir.
func Write(dir string, canonical, text, html []byte) error {
	var c Certificate
	if err := json.Unmarshal(canonical, &c); err != nil {
		return err
	}
	sums := fmt.Sprintf("%s  %s\n%s  %s\n", c.HistorySHA256, HistoryFile, Sum(canonical), JSONFile)
	var errs error
	for name, b := range map[string][]byte{JSONFile: canonical, TextFile: text, PageFile: html, SumsFile: []byte(sums)} {
		errs = errors.Join(errs, os.WriteFile(filepath.Join(dir, name), b, 0o644))
	}
	return errs
}

// Check is the result of judging a saved history again.
type Check struct {
	Certificate *Certificate // regenerated
	// Certified is the certificate that was beside the history; nil: there was none.
	Certified *Certificate
	// Trouble lists what does not agree; empty: everything does.
	Trouble []string
}

// maxSaved bounds the size of a certificate, in bytes.
const maxSaved = 64 << 20

// Verify judges the history at path, a file or a directory with HistoryFile in it, and compares it
// with the certificate and the check sums beside it.
func Verify(path string) (*Check, error) {
	if info, err := os.Stat(path); err != nil {
		return nil, err
	} else if info.IsDir() {
		path = filepath.Join(path, HistoryFile)
	}
	sum, err := FileSum(path)
	if err != nil {
		return nil, err
	}
	h, err := history.Load(path)
	if err != nil {
		return nil, err
	}
	k := &Check{}
	if k.Certificate, err = New(h, sum); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	saved, err := readBounded(filepath.Join(filepath.Dir(path), JSONFile))
	if errors.Is(err, os.ErrNotExist) {
		return k, nil
	}
	if err != nil {
		return nil, err
	}
	k.Certified = &Certificate{}
	if err := json.Unmarshal(saved, k.Certified); err != nil {
		k.Trouble = append(k.Trouble, fmt.Sprintf("%s: not a certificate: %v", JSONFile, err))
		return k, nil
	}
	return k, k.compare(filepath.Dir(path), saved, sum)
}

// FileSum is the SHA-256 of a file, in hex.
func FileSum(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	_, err = io.Copy(sum, f)
	return hex.EncodeToString(sum.Sum(nil)), errors.Join(err, f.Close())
}

func readBounded(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	b, err := io.ReadAll(io.LimitReader(f, maxSaved+1))
	if err == nil && len(b) > maxSaved {
		err = fmt.Errorf("%s: more than %d bytes", path, maxSaved)
	}
	return b, err
}

// compare finds what was changed: the history, the certificate, or the rules.
func (k *Check) compare(dir string, saved []byte, historySum string) error {
	if k.Certified.HistorySHA256 != historySum {
		k.Trouble = append(k.Trouble, fmt.Sprintf("%s is not the one the certificate was made from: its sha256 is %s, in the certificate it is %s", HistoryFile, historySum, k.Certified.HistorySHA256))
	}
	sums, err := readBounded(filepath.Join(dir, SumsFile))
	if err == nil {
		for name, got := range map[string]string{HistoryFile: historySum, JSONFile: Sum(saved)} {
			if want := listed(string(sums), name); want != got {
				k.Trouble = append(k.Trouble, fmt.Sprintf("%s has sha256 %s, in %s it is %q", name, got, SumsFile, want))
			}
		}
	} else if !errors.Is(err, os.ErrNotExist) {
		return err
	}
	made, err := k.Certificate.Canonical()
	if err != nil || bytes.Equal(made, saved) {
		return err
	}
	fields := differing(saved, made)
	text := fmt.Sprintf("the history gives another certificate than %s: %s", JSONFile, strings.Join(fields, ", "))
	if by := k.Certified.Recorder["version"]; by != version.String() {
		text += fmt.Sprintf("; it was made by version %s, this is %s, whose rules may differ", by, version.String())
	}
	k.Trouble = append(k.Trouble, text)
	return nil
}

// listed is the sum of a file in the format of sha256sum.
func listed(sums, name string) string {
	for line := range strings.Lines(sums) {
		if sum, file, ok := strings.Cut(strings.TrimSpace(line), "  "); ok && file == name {
			return sum
		}
	}
	return ""
}

// differing names the fields of two JSON objects that differ.
func differing(a, b []byte) (out []string) {
	var x, y map[string]json.RawMessage
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		return []string{"not JSON"}
	}
	var names []string
	for n := range x {
		names = append(names, n)
	}
	for n := range y {
		if _, both := x[n]; !both {
			names = append(names, n)
		}
	}
	for _, n := range names {
		var p, q bytes.Buffer
		if json.Compact(&p, x[n]) != nil || json.Compact(&q, y[n]) != nil || !bytes.Equal(p.Bytes(), q.Bytes()) {
			out = append(out, n)
		}
	}
	if len(out) == 0 {
		out = []string{"white space"}
	}
	slices.Sort(out)
	return out
}
