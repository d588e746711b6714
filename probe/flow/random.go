package flow

import "math"

// random is SplitMix64. It is implemented here because results name a seed, and the resulting
// orders must be the same with every Go release.
type random struct{ state uint64 }

const golden = 0x9e3779b97f4a7c15

func (r *random) next() uint64 {
	r.state += golden
	return mix(r.state)
}

// float is uniform in (0, 1): never 0, so that its logarithm is finite.
func (r *random) float() float64 { return unit(r.next()) }

// exponential has mean 1.
func (r *random) exponential() float64 { return -math.Log(r.float()) }

// mix scrambles one word: a counter in, an independent looking word out.
func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// hash returns the word of a seed and a number.
func hash(seed, n uint64) uint64 { return mix(mix(seed+golden) + (n+1)*golden) }

func unit(z uint64) float64 { return (float64(z>>11) + 0.5) / (1 << 53) }
