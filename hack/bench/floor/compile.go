package floor

import (
	_ "embed" // the relay's source
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

//go:embed c/relay.c
var relayC []byte

// compile builds the relay in C inside dir.
func compile(cc, dir string) (string, error) {
	source, program := filepath.Join(dir, "relay.c"), filepath.Join(dir, "relay-c")
	if err := os.WriteFile(source, relayC, 0o600); err != nil {
		return "", err
	}
	out, err := exec.Command(cc, "-O2", "-pthread", "-o", program, source).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s cannot compile the relay: %w: %s", cc, err, strings.TrimSpace(string(out)))
	}
	return program, nil
}
