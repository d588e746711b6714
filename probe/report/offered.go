package report

// Offered is the order flow of one step of one probe, in its measured part.
type Offered struct {
	// Messages by kind, selected by intended time; all zero where orders are alike.
	New       int64 `json:"new,omitempty"`
	Cancelled int64 `json:"cancelled,omitempty"`
	Replaced  int64 `json:"replaced,omitempty"`
	// Fano factors at several windows; those with fewer than 20 windows in the
	// measured part are left out.
	Fano []FanoFactor `json:"fano,omitempty"`
	// PeakRate is orders/s intended in the busiest 10 ms.
	PeakRate float64 `json:"peakRate"`
	// LateInBursts of LateCreated were intended in 10 ms that held more than
	// twice the mean.
	LateInBursts int64 `json:"lateInBursts,omitempty"`
	// PeakMinute is the busiest minute of a trading day.
	PeakMinute *PeakMinute `json:"peakMinute,omitempty"`
}

// FanoFactor is variance over mean of the orders in a window of time.
type FanoFactor struct {
	WindowMs int64   `json:"windowMs"`
	Intended float64 `json:"intended"` // by intended time
	Created  float64 `json:"created"`  // by actual creation time: as offered to the grid
}

// PeakMinute of a trading day that is compressed to the measured part.
type PeakMinute struct {
	FromMs      float64   `json:"fromMs"` // after the measured part began
	LengthMs    float64   `json:"lengthMs"`
	Orders      int64     `json:"orders"`
	CreateToEnd Histogram `json:"createToEnd"`
}

// fano is the factor at a window as created; false if missing.
func (o *Offered) fano(windowMs int64) (float64, bool) {
	for _, f := range o.Fano {
		if f.WindowMs == windowMs {
			return f.Created, true
		}
	}
	return 0, false
}
