package derive

import "math"

// Sketch counts values in buckets that grow by 2 %, so that a percentile is within 1 % of a value that was there, for any number of
// values in the same ten kilobytes. Milliseconds from 0.01 to about 31 years; what lies outside counts as the end that it is
// beyond. The zero value is empty.
type Sketch struct {
	buckets [sketchBuckets]uint64
	n       uint64
}

const (
	sketchGrowth  = 1.02
	sketchLeast   = 0.01
	sketchBuckets = 1280
)

// Add counts a value; what is no number or below 0 is not counted.
func (s *Sketch) Add(v float64) {
	if !(v >= 0) {
		return
	}
	i := 0
	if v > sketchLeast {
		i = int(min(math.Ceil(math.Log(v/sketchLeast)/math.Log(sketchGrowth)), sketchBuckets-1))
	}
	s.buckets[i]++
	s.n++
}

// Merge adds what o has counted.
func (s *Sketch) Merge(o *Sketch) {
	for i, n := range o.buckets {
		s.buckets[i] += n
	}
	s.n += o.n
}

// Count is how many values were added.
func (s *Sketch) Count() uint64 { return s.n }

// Quantile is the value that a share q of all is not above, within 1 %; not ok when there is none.
func (s *Sketch) Quantile(q float64) (v float64, ok bool) {
	if s.n == 0 {
		return 0, false
	}
	rank := uint64(math.Ceil(q * float64(s.n)))
	var seen uint64
	for i, n := range s.buckets {
		if seen += n; n > 0 && seen >= rank {
			if i == 0 {
				return sketchLeast, true
			}
			// The middle of a bucket, by ratio, is at most 1 % from both ends.
			return sketchLeast * math.Pow(sketchGrowth, float64(i)-0.5), true
		}
	}
	return 0, false
}
