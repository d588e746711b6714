package client

import "fmt"

var readModes = map[string]ReadMode{"confirmed": Confirmed, "leased": Leased, "backup": Backup}

// ReadModeHelp explains the words that ParseReadMode takes, for a flag's help.
const ReadModeHelp = "confirmed (linearizable), leased (faster, trusts clocks) or backup (may be stale)"

// ParseReadMode is for flags: confirmed, leased or backup.
func ParseReadMode(s string) (ReadMode, error) {
	if m, ok := readModes[s]; ok {
		return m, nil
	}
	return 0, fmt.Errorf("value %q, allowed: confirmed, leased, backup", s)
}
