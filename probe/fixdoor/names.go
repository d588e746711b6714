package fixdoor

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// CompIDs of a door for one run have the length of those in the published order, so that its length does not change.
const (
	senderPattern = "PROBE%07d"
	ownTarget     = "ORDERGRID"
)

// User is tag 553 of these sessions.
const User = "order-probe"

// maxTried bounds how many names are tried.
const maxTried = 1_000_000

// NamesApart are so many numbers that names of two processes before one grid are others, if the first of each are as far
// apart: 64 threads find theirs among fewer.
const NamesApart = 100_000

// Names returns names of sessions from a number on, so many of each partition as need says.
func Names(version string, first int, need map[wire.PartitionID]int, home func(version, sender, target string) wire.PartitionID) ([]Name, error) {
	missing, names := 0, []Name(nil)
	for _, n := range need {
		missing += n
	}
	left := map[wire.PartitionID]int{}
	for p, n := range need {
		left[p] = n
	}
	for i := first; i < first+maxTried; i++ {
		if missing == 0 {
			return names, nil
		}
		n := Name{version, fmt.Sprintf(senderPattern, i), ownTarget}
		if p := home(n.Version, n.Sender, n.Target); left[p] > 0 {
			left[p]--
			missing--
			names = append(names, n)
		}
	}
	return nil, fmt.Errorf("%d sessions have no name among %d: has the grid these partitions? %v", missing, maxTried, left)
}

// WriteSessions writes the file of sessions into a directory, with one password for all, and returns its path.
func WriteSessions(dir string, names []Name, password string) (path string, err error) {
	var file struct {
		Sessions []entry `json:"sessions"`
	}
	for _, n := range names {
		file.Sessions = append(file.Sessions, entry{Version: n.Version, SenderCompID: n.Sender, TargetCompID: n.Target, Username: User, PasswordFile: "password"})
	}
	text, err := json.Marshal(file)
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(dir, "password"), []byte(password+"\n"), 0o600); err != nil {
		return "", err
	}
	path = filepath.Join(dir, "sessions.json")
	return path, os.WriteFile(path, text, 0o600)
}
