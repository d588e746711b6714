package wire

import (
	"bytes"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the examples of docs/protocol.md anew")

// TestProtocolPage holds docs/protocol.md against the code: a section per frame
// with the right number, an example with the bytes the encoder writes now, and
// every reject code.
func TestProtocolPage(t *testing.T) {
	const path = "../../docs/protocol.md"
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := page
	for _, c := range codecs {
		if heading := fmt.Sprintf("\n### 0x%02x %s (", uint8(c.typ), c.typ); !bytes.Contains(page, []byte(heading)) {
			t.Errorf("no section %q", heading)
		}
		want = replaceExample(t, want, c.typ, hex.Dump(c.encode(samples()[c.typ])))
	}
	for code := CodeBadFIX; code <= CodeNotPermitted; code++ {
		if row := fmt.Sprintf("\n| %d | %s |", code, code); !bytes.Contains(page, []byte(row)) {
			t.Errorf("no row %q", row)
		}
	}
	if *update {
		if err := os.WriteFile(path, want, 0o644); err != nil {
			t.Fatal(err)
		}
	} else if !bytes.Equal(page, want) {
		t.Error("docs/protocol.md shows other bytes than the code writes; run go test ./grid-node/wire -run ProtocolPage -update and read the difference")
	}
}

func replaceExample(t *testing.T, page []byte, typ Type, dump string) []byte {
	marker := fmt.Sprintf("<!-- example %s -->\n```\n", typ)
	before, after, ok := strings.Cut(string(page), marker)
	_, rest, closed := strings.Cut(after, "```\n")
	if !ok || !closed {
		t.Errorf("no example of %s", typ)
		return page
	}
	return []byte(before + marker + dump + "```\n" + rest)
}
