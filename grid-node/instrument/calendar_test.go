package instrument

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/match"
)

const exchangeDay = `{"timeZone":"Europe/Berlin","holidays":["2026-12-25"],"phases":[
	{"at":"17:30","state":"call"},{"at":"08:50","state":"call"},{"at":"09:00","state":"open"},{"at":"17:35","state":"closed"}]}`

func phasesText(list []Phase) string {
	var all []string
	for _, p := range list {
		all = append(all, fmt.Sprintf("%s %d", p.At.UTC().Format("02T15:04"), p.State))
	}
	return strings.Join(all, ", ")
}

// TestCalendarPhases: phases are of the local time of their day, not of holidays and other days of the week.
func TestCalendarPhases(t *testing.T) {
	at := func(text string) time.Time {
		v, err := time.Parse(time.RFC3339, text)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	for name, c := range map[string]struct {
		text, from, to, want string
	}{
		"a day":            {exchangeDay, "2026-12-23T00:00:00+01:00", "2026-12-24T00:00:00+01:00", "23T07:50 1, 23T08:00 3, 23T16:30 1, 23T16:35 0"},
		"a part of it":     {exchangeDay, "2026-12-23T08:00:00Z", "2026-12-23T16:30:00Z", "23T08:00 3"},
		"holiday, weekend": {exchangeDay, "2026-12-25T00:00:00+01:00", "2026-12-28T08:00:00Z", "28T07:50 1"},
		"summer":           {exchangeDay, "2026-07-01T00:00:00Z", "2026-07-01T08:00:00Z", "01T06:50 1, 01T07:00 3"},
		"days":             {`{"days":["Saturday"],"phases":[{"at":"00:00","state":"open"}]}`, "2026-12-21T00:00:00Z", "2027-01-04T00:00:00Z", "26T00:00 3, 02T00:00 3"},
		"no phases":        {`{"phases":[]}`, "2026-12-21T00:00:00Z", "2027-01-04T00:00:00Z", ""},
		"the hour that there is twice": {`{"timeZone":"Europe/Berlin","days":["Sunday"],"phases":[{"at":"01:30","state":"call"},{"at":"02:30","state":"open"},{"at":"03:30","state":"closed"}]}`, "2026-10-25T00:00:00+02:00", "2026-10-26T00:00:00+01:00",
			"24T23:30 1, 25T01:30 3, 25T02:30 0"},
		"the hour that there is not": {`{"timeZone":"Europe/Berlin","days":["Sunday"],"phases":[{"at":"01:30","state":"call"},{"at":"02:30","state":"open"},{"at":"03:30","state":"closed"}]}`, "2026-03-29T00:00:00+01:00", "2026-03-30T00:00:00+02:00",
			"29T00:30 1, 29T01:30 0"},
	} {
		cal, err := ParseCalendar([]byte(c.text))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := phasesText(cal.Phases(at(c.from), at(c.to))); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// TestCalendarRefused: what is wrong is named, with what is allowed.
func TestCalendarRefused(t *testing.T) {
	for text, want := range map[string]string{
		``:                             "allowed: an object with timeZone",
		`[]`:                           "allowed: an object with timeZone",
		`{"phases":[]} {}`:             "something follows",
		`{"phase":[]}`:                 `unknown field "phase"`,
		`{"timeZone":"Nowhere"}`:       `timeZone is "Nowhere", allowed: a name of the IANA time zone database`,
		`{"timeZone":"Local"}`:         `timeZone is "Local"`,
		`{"timeZone":"../x"}`:          `timeZone is "../x"`,
		`{"days":["Mon"]}`:             `days: "Mon", allowed: Monday to Sunday, each once`,
		`{"days":["Monday","Monday"]}`: `days: "Monday"`,
		`{"holidays":["2026-02-30"]}`:  `holidays: "2026-02-30", allowed: a date`,
		`{"holidays":["2026-02-03","2026-02-03"]}`:                                                               "each once",
		`{"phases":[{"at":"9:00","state":"open"}]}`:                                                              `at is "9:00", allowed: a time of the day from 00:00 to 23:59`,
		`{"phases":[{"at":"24:00","state":"open"}]}`:                                                             `at is "24:00"`,
		`{"phases":[{"at":"09:00","state":"halted"}]}`:                                                           `state at 09:00 is "halted", allowed: open, call, closed`,
		`{"phases":[{"at":"09:00"}]}`:                                                                            `state at 09:00 is ""`,
		`{"phases":[{"at":"09:00","state":"open"},{"at":"09:00","state":"call"}]}`:                               "two at 09:00",
		`{"phases":[],"source":{"grid":"g"}}`:                                                                    "source {Grid:g",
		`{"phases":[` + strings.Repeat(`{"at":"09:00","state":"open"},`, 16) + `{"at":"09:01","state":"open"}]}`: "17 phases and 0 holidays, allowed: up to 16 and 366",
	} {
		if _, err := ParseCalendar([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// TestCalendarFile: it need not be there; one that was there and is wrong, or gone, changes nothing and is reported.
func TestCalendarFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "instruments.json"+CalendarFileName)
	f, err := OpenCalendar(path, nil)
	if err != nil || f.Calendar() != nil || f.SHA256() != "" || f.Err() != nil {
		t.Fatalf("no file: %v, %v, %s", err, f.Calendar(), f.SHA256())
	}
	if err := os.WriteFile(path, []byte(exchangeDay), 0o600); err != nil {
		t.Fatal(err)
	}
	if !f.file.Reload() || f.Err() != nil || f.Calendar() == nil || len(f.SHA256()) != 64 {
		t.Fatalf("a file: %v, %s", f.Err(), f.SHA256())
	}
	before := f.Calendar()
	if before.phases[0].state != match.Call || before.SourceText() != nil {
		t.Errorf("it has %+v", before)
	}
	if err := os.WriteFile(path, []byte(`{`), 0o600); err != nil {
		t.Fatal(err)
	}
	if !f.file.Reload() || f.Err() == nil || f.Calendar() != before {
		t.Errorf("a wrong file: %v", f.Err())
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if !f.file.Reload() || !errors.Is(f.Err(), os.ErrNotExist) || f.Calendar() != before {
		t.Errorf("a file that is gone: %v", f.Err())
	}
}
