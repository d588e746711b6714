package published

import (
	"fmt"
)

// Caches are the parameters of the scenarios about questions to caches, and changes of them. What a scenario has not is 0.
type Caches struct {
	Rows   int // of each of Caches
	Caches int
	Users  int // clients beside the measured one
	// SleepMs is how long such a client rests between what it does.
	SleepMs int
	Loops   int
	Share   float64 // of the rows that are changed
}

// exactRows is what a cache has in the report's other tables, where it does not say.
const exactRows = 1_000_000

// Caches reads both parameter sets.
func (d *Data) Caches(s Scenario) (exact, scaled Caches, err error) {
	var a struct {
		Rows         any     `json:"rows"` // bar-types: "not stated"
		RowsPerCache int     `json:"rows_per_cache"`
		Caches       int     `json:"caches"`
		Queries      int     `json:"queries"`
		Users        int     `json:"bg_users"`
		Traffic      bool    `json:"bg"`
		Share        float64 `json:"share"`
		Loops        int     `json:"loops"`
	}
	var b struct {
		Rows         int      `json:"rows"`
		RowsPerCache int      `json:"rows_per_cache"`
		Caches       int      `json:"caches"`
		Selectivity  string   `json:"selectivity"`
		Users        int      `json:"bg_users"`
		SleepMs      int      `json:"bg_sleep_ms"`
		Loops        int      `json:"loops"`
		Share        float64  `json:"share"`
		Clients      []string `json:"clients"`
	}
	if err := s.decodeSets("", &a, &b); err != nil {
		return exact, scaled, err
	}
	exact = Caches{max(a.RowsPerCache, exactRows), max(a.Caches, 1), max(a.Users, b.Users), b.SleepMs, max(a.Loops, b.Loops, 1), a.Share}
	scaled = Caches{max(b.Rows, b.RowsPerCache), max(b.Caches, 1), b.Users, b.SleepMs, max(b.Loops, 1), b.Share}
	if s.Name == ClientScenario { // the caches of bar-query
		q, _ := d.Scenario(QueryScenario)
		of, scaledOf, err := d.Caches(q)
		exact.Rows, exact.Caches, scaled.Rows, scaled.Caches = of.Rows, of.Caches, scaledOf.Rows, scaledOf.Caches
		if err != nil {
			return exact, scaled, err
		}
	}
	for _, c := range []Caches{exact, scaled} {
		switch {
		case c.Rows < 1 || c.Loops < 1 || c.Users < 0 || c.Share < 0 || c.Share > 1:
			return exact, scaled, fmt.Errorf("scenario %q: %+v: rows and loops must be 1 or more, share 0 to 1", s.Name, c)
		case s.Name == UpdateScenario && c.Share == 0, s.Name == QueryScenario && c.Caches%6 != 0:
			return exact, scaled, fmt.Errorf("scenario %q: %+v: needs a share, and 6 caches or a multiple of that", s.Name, c)
		}
	}
	return exact, scaled, nil
}

// QuerySeconds are the published times of a question without and with traffic; false: there are none.
func (d *Data) QuerySeconds(query string) (idle, traffic float64, ok bool) {
	t, _ := d.Table("coherence", "5.3")
	for _, r := range t.Rows {
		if r["query"].Text == query {
			return r["avg_s_no_traffic"].Number, r["avg_s_traffic"].Number, true
		}
	}
	return 0, 0, false
}

// Number is a published number by the text of the row's first column.
func (d *Data) Number(report, table, row, column string) float64 {
	t, _ := d.Table(report, table)
	for _, r := range t.Rows {
		if r[t.Columns[0]].Text == row {
			return r[column].Number
		}
	}
	return 0
}
