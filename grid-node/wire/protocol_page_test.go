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

// TestProtocolPage compares docs/protocol.md with the code: a section per frame with the
// right number, an example with the bytes the encoder writes now, and every reject code.
func TestProtocolPage(t *testing.T) {
	const path = "../../docs/protocol.md"
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := page
	want = replaceBlock(t, want, "<!-- frames -->\n", "\n### ", frameTable())
	for _, f := range Frames {
		if heading := fmt.Sprintf("\n### 0x%02x %s (", uint8(f.Type), f.Name); !bytes.Contains(page, []byte(heading)) {
			t.Errorf("no section %q", heading)
		}
		want = replaceBlock(t, want, fmt.Sprintf("<!-- example %s -->\n```\n", f.Name), "```\n", hex.Dump(f.Encode(f.Example)))
	}
	for code := CodeBadFIX; code <= lastCode; code++ {
		if codeNames[code] == "" {
			continue // not used any more
		}
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

// frameTable is the overview of the page.
func frameTable() string {
	var b strings.Builder
	b.WriteString("| type | frame | sent by | takes |\n|---|---|---|---|\n")
	takes := map[uint16]string{
		0: "", MaySubmit: "Submit", MayRead: "Read", MayAdmin: "Admin", MayWatch: "Watch", MaySink: "Sink",
		MayLink: "Link", MayQuery: "Query", MayGateway: "Gateway", MayRisk: "Risk", MayWrite: "Write",
	}
	for _, f := range Frames {
		fmt.Fprintf(&b, "| 0x%02x | %s | %s | %s |\n", uint8(f.Type), f.Name, f.From, takes[f.Needs])
	}
	return b.String()
}

// replaceBlock puts text between begin and end.
func replaceBlock(t *testing.T, page []byte, begin, end, text string) []byte {
	before, after, ok := strings.Cut(string(page), begin)
	_, rest, closed := strings.Cut(after, end)
	if !ok || !closed {
		t.Errorf("no block %q", begin)
		return page
	}
	return []byte(before + begin + text + end + rest)
}
