package report

// Stats are the statistics of one latency of one probe in one step, in microseconds. Mean, standard
// deviation, minimum and maximum are exact, from every order's record; percentiles come from the
// histogram (three digits). A figure with too few samples is absent.
type Stats struct {
	Samples  int64    `json:"samples"`
	MeanUs   float64  `json:"meanUs"`
	StdDevUs float64  `json:"stdDevUs"`
	MinUs    float64  `json:"minUs"`
	MaxUs    float64  `json:"maxUs"`
	P50Us    *float64 `json:"p50Us,omitempty"`
	P90Us    *float64 `json:"p90Us,omitempty"`
	P95Us    *float64 `json:"p95Us,omitempty"`
	P99Us    *float64 `json:"p99Us,omitempty"`
	P999Us   *float64 `json:"p99_9Us,omitempty"`
	P9999Us  *float64 `json:"p99_99Us,omitempty"`
	// Best80Us is the mean of the best 80 % of the samples, as one published
	// report has it. It hides the tail.
	Best80Us *float64 `json:"best80Us,omitempty"`
}

// StepStats holds the statistics of the four histograms of a step.
type StepStats struct {
	Lag           Stats `json:"lag"`
	IntendedToEnd Stats `json:"intendedToEnd"`
	CreateToEnd   Stats `json:"createToEnd"`
	SendToEnd     Stats `json:"sendToEnd"`
}

// Series is latency over the measured part of a step, in buckets of intended
// time. Buckets without an acknowledged order are left out.
type Series struct {
	// FirstBucketMs and WholeBucketMs are the widths of the buckets.
	FirstBucketMs float64 `json:"firstBucketMs"`
	WholeBucketMs float64 `json:"wholeBucketMs"`
	// First covers the first three seconds, finely, as in the published time
	// plots; Whole all of the measured part in at most 120 buckets.
	First []Bucket `json:"first"`
	Whole []Bucket `json:"whole"`
}

// Bucket holds the acknowledged orders intended within one interval.
type Bucket struct {
	AtMs        float64 `json:"t"` // begin of the bucket, ms after the begin of the measured part
	Orders      int64   `json:"n"`
	CreateToEnd Moments `json:"c2e"`
	SendToEnd   Moments `json:"s2e"`
}

// Moments of a bucket, exact, in microseconds. With few orders P99 is Max.
type Moments struct {
	MeanUs float64 `json:"mean"`
	P50Us  float64 `json:"p50"`
	P99Us  float64 `json:"p99"`
	MaxUs  float64 `json:"max"`
}

// Spike is one interval in which orders waited: its worst order and those around it. After a stall
// each publishing thread sends the waiting orders one after the other, each having waited less than
// the previous one: in a time plot a steep rise, then one descent per thread.
type Spike struct {
	AtMs          float64 `json:"t"` // creation of the worst order, ms after the begin of the measured part
	CreateToEndUs float64 `json:"c2eUs"`
	SendToEndUs   float64 `json:"s2eUs"`
	Index         int64   `json:"index"` // of the worst order, as in the ledger
	Thread        int     `json:"thread"`
	// StallFromMs to StallToMs is the longest time around it in which no order
	// of this probe was acknowledged.
	StallFromMs float64 `json:"stallFromMs"`
	StallToMs   float64 `json:"stallToMs"`
	// Queued is how many orders had been created and not sent when it ended.
	Queued   int64        `json:"queued"`
	Orders   []SpikeOrder `json:"orders"` // by creation, at most 120
	Descents []Descent    `json:"descents,omitempty"`
	// Pauses are those of the probe and of grid nodes that overlap the stall or
	// end within 1 ms of it. None means that none is known, see Conditions.PauseSources.
	Pauses []Pause `json:"pauses,omitempty"`
}

// SpikeOrder is one order around a spike.
type SpikeOrder struct {
	AtMs          float64 `json:"t"` // creation, ms after the begin of the measured part
	CreateToEndUs float64 `json:"c2e"`
	SendToEndUs   float64 `json:"s2e"`
	Thread        int     `json:"th"`
}

// Descent is how one publishing thread worked off its backlog.
type Descent struct {
	Thread int     `json:"thread"`
	Orders int     `json:"orders"`
	FromMs float64 `json:"fromMs"` // creation of its first and last order
	ToMs   float64 `json:"toMs"`
	FromUs float64 `json:"fromUs"` // their create-to-end
	ToUs   float64 `json:"toUs"`
	// SlopeUsPerMs is the change of create-to-end for each ms of creation time:
	// -1,000 is a queue that was worked off in no time.
	SlopeUsPerMs float64 `json:"slopeUsPerMs"`
}

// Pause is one stop-the-world pause of a process's runtime.
type Pause struct {
	Of    string  `json:"of"` // "probe", or the node's address
	AtMs  float64 `json:"t"`  // begin, ms after the begin of the measured part
	Us    float64 `json:"us"`
	Cause string  `json:"cause"` // such as "gc"
}

// PauseSource describes the knowledge about the pauses of one process in the measured part of a
// step, and the precision of its times.
type PauseSource struct {
	Of string `json:"of"` // "probe", or the node's address
	// Count, TotalUs and MaxUs are negative if unknown.
	Count   int64   `json:"count"`
	TotalUs float64 `json:"totalUs"`
	MaxUs   float64 `json:"maxUs"`
	// Times is the precision of the times of single pauses: "exact" (same clock), "other clock"
	// (another machine's clock, off by an unknown amount) or "none" (counted only).
	Times string `json:"times"`
}

// Values of PauseSource.Times.
const (
	TimesExact      = "exact"
	TimesOtherClock = "other clock"
	TimesNone       = "none"
)
