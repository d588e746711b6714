package flow

import (
	"math"
	"slices"
)

// DayMinutes is the length of a trading day, 09:30 to 16:00.
const DayMinutes = 390

// The day's curve, as intensity over its mean before normalising: a level, the additions of the
// opening and the close, and the closing auction. Lengths in days.
const (
	dayLevel       = 0.55
	dayOpen        = 2.6
	dayOpenLength  = 0.045
	dayClose       = 1.6
	dayCloseLength = 0.07
	daySpike       = 3.0             // added in the last minutes
	daySpikeLength = 3. / DayMinutes // as long as this
)

// dayMass is how much of the curve lies before u in 0..1.
func dayMass(u float64) float64 {
	m := dayLevel*u +
		dayOpen*dayOpenLength*(1-math.Exp(-u/dayOpenLength)) +
		dayClose*dayCloseLength*(math.Exp((u-1)/dayCloseLength)-math.Exp(-1/dayCloseLength))
	return m + daySpike*max(0, u-(1-daySpikeLength))
}

// dayIntensity is the curve at u in 0..1, over its mean.
func dayIntensity(u float64) float64 {
	v := dayLevel + dayOpen*math.Exp(-u/dayOpenLength) + dayClose*math.Exp((u-1)/dayCloseLength)
	if u >= 1-daySpikeLength {
		v += daySpike
	}
	return v / dayMass(1)
}

// dayInverse is the u before which a share of the day's orders lies.
func dayInverse(share float64) float64 {
	low, high, want := 0., 1., share*dayMass(1)
	for range 50 {
		if mid := (low + high) / 2; dayMass(mid) < want {
			low = mid
		} else {
			high = mid
		}
	}
	return low
}

// dayTimes are intended times of a step, in ns: rate*warmup of them evenly
// random before the opening, and rate*measure along the day.
func dayTimes(p Params) []int64 {
	rng := random{state: hash(p.seed(), 0)}
	warm, n := orders(p.Rate, p.Warmup), orders(p.Rate, p.Measure)
	times := make([]int64, warm+n)
	for i := range warm {
		times[i] = int64(rng.float() * float64(p.Warmup))
	}
	for i := range n {
		times[warm+i] = int64(p.Warmup) + int64(dayInverse(rng.float())*float64(p.Measure))
	}
	slices.Sort(times)
	return times
}

// PeakMinute is the busiest minute of the day, as offsets within a measured
// time of the given length.
func PeakMinute(measure int64) (from, to int64) {
	const steps = 20 // a minute
	best := 0.
	for i := range DayMinutes*steps - steps + 1 {
		u := float64(i) / (DayMinutes * steps)
		if mass := dayMass(u+1./DayMinutes) - dayMass(u); mass > best {
			best, from = mass, int64(u*float64(measure))
		}
	}
	return from, from + measure/DayMinutes
}
