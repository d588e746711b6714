package script

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/ordergrid/ordergrid/gateway/fix"
)

// Version is a version of the suite.
type Version struct {
	Name string // of its folders
	Of   fix.Version
}

// Versions are those that the acceptor speaks.
var Versions = []Version{{"fix42", fix.FIX42}, {"fix44", fix.FIX44}, {"fix50sp2", fix.FIXT11}}

// Case is a script with the settings it is written for.
type Case struct {
	Group, Name, Path string
	Profile           fix.Profile
}

// Cases lists the scripts of a version, below the directory of quickfixgo's module.
func Cases(dir string, v Version) ([]Case, error) {
	var list []Case
	for _, group := range []string{"server", "nextexpectedseqnum", "resendreqchunksize", "lastseqnumprocessed"} {
		paths, err := filepath.Glob(filepath.Join(dir, "_test", "definitions", group, v.Name, "*.def"))
		if err != nil || len(paths) == 0 {
			continue
		}
		p, err := profile(filepath.Join(dir, "_test", "cfg", group, v.Name+".cfg"), v.Of)
		if err != nil {
			return nil, err
		}
		for _, path := range paths {
			list = append(list, Case{Group: group, Name: strings.TrimSuffix(filepath.Base(path), ".def"), Path: path, Profile: p})
		}
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%s has no scripts of %s", dir, v.Name)
	}
	return list, nil
}

// profile reads the settings of a suite.
func profile(path string, v fix.Version) (fix.Profile, error) {
	f, err := os.Open(path)
	if err != nil {
		return fix.Profile{}, err
	}
	defer f.Close() //nolint:errcheck // it was only read
	p := fix.Profile{ID: fix.ID{Version: v}}
	for s := bufio.NewScanner(f); s.Scan(); {
		key, value, _ := strings.Cut(strings.TrimSpace(s.Text()), "=")
		switch key {
		case "SenderCompID":
			p.Acceptor = value
		case "TargetCompID":
			p.Initiator = value
		case "ResetOnLogon":
			p.ResetOnLogon = value == "Y"
		case "EnableNextExpectedMsgSeqNum":
			p.NextExpected = value == "Y"
		case "EnableLastMsgSeqNumProcessed":
			p.LastProcessed = value == "Y"
		case "ResendRequestChunkSize":
			if p.ResendChunk, err = strconv.ParseUint(value, 10, 32); err != nil {
				return p, fmt.Errorf("%s: %s: %w", path, key, err)
			}
		}
	}
	return p, nil
}
