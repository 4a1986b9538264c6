package proxy

import (
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"time"

	"rolltap/capture"
)

// Size is a number of bytes, written 512, 32KiB, 64MiB or 1GiB.
type Size int64

// UnmarshalText reads a size; a bare number is bytes.
func (s *Size) UnmarshalText(b []byte) error {
	text := strings.TrimSpace(string(b))
	shift := 0
	for i, unit := range []string{"KiB", "MiB", "GiB"} {
		if rest, ok := strings.CutSuffix(text, unit); ok {
			text, shift = strings.TrimSpace(rest), 10*(i+1)
			break
		}
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || n > (1<<62)>>shift {
		return fmt.Errorf("size %q: want a number of bytes such as 512, 32KiB or 64MiB", b)
	}
	*s = Size(n << shift)
	return nil
}

// MarshalText writes the size with the largest unit that divides it.
func (s Size) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

func (s Size) String() string {
	for i, unit := range []string{"GiB", "MiB", "KiB"} {
		if one := Size(1) << (10 * (3 - i)); s != 0 && s%one == 0 {
			return strconv.FormatInt(int64(s/one), 10) + unit
		}
	}
	return strconv.FormatInt(int64(s), 10)
}

// ModelMap is models by the names that clients have for them, written FROM=TO,FROM=TO.
type ModelMap map[string]string

// UnmarshalText reads pairs between commas; blanks around names do not count.
func (m *ModelMap) UnmarshalText(b []byte) error {
	pairs := ModelMap{}
	for pair := range strings.SplitSeq(string(b), ",") {
		from, to, ok := strings.Cut(pair, "=")
		from, to = strings.TrimSpace(from), strings.TrimSpace(to)
		if !ok || from == "" || to == "" {
			return fmt.Errorf("%q: want FROM=TO", pair)
		}
		if _, ok := pairs[from]; ok {
			return fmt.Errorf("%q is renamed twice", from)
		}
		pairs[from] = to
	}
	*m = pairs
	return nil
}

func (m ModelMap) String() string {
	var pairs []string
	for from, to := range m {
		pairs = append(pairs, from+"="+to)
	}
	slices.Sort(pairs)
	return strings.Join(pairs, ",")
}

// FileMode is the mode of a file, written in octal.
type FileMode fs.FileMode

// UnmarshalText reads a mode that files of a store may have.
func (m *FileMode) UnmarshalText(b []byte) error {
	n, err := strconv.ParseUint(strings.TrimPrefix(string(b), "0o"), 8, 16)
	if err != nil || !capture.ValidMode(fs.FileMode(n)) {
		return fmt.Errorf("mode %q: want an octal one that its owner can read and write, others not write, and nobody execute, such as 0640", b)
	}
	*m = FileMode(n)
	return nil
}

// MarshalText writes the mode as it is read.
func (m FileMode) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

func (m FileMode) String() string { return fmt.Sprintf("%04o", uint32(m)) }

// Keep is how long a rollout is kept behind its last record, and how many bytes all of them may have, written 168h,50GiB,
// or one of both. The zero value, written off, keeps everything.
type Keep struct {
	Age   time.Duration
	Bytes Size
}

// UnmarshalText reads a duration, a size, or both with a comma between.
func (k *Keep) UnmarshalText(b []byte) error {
	text := strings.TrimSpace(string(b))
	if text == "off" {
		*k = Keep{}
		return nil
	}
	var read Keep
	for part := range strings.SplitSeq(text, ",") {
		part = strings.TrimSpace(part)
		age, notAge := time.ParseDuration(part)
		var size Size
		notSize := size.UnmarshalText([]byte(part))
		switch {
		case notAge == nil && age > 0 && read.Age == 0:
			read.Age = age
		case notSize == nil && size > 0 && read.Bytes == 0:
			read.Bytes = size
		default:
			return fmt.Errorf("%q: want off, or an age, a size, or one of each, such as 168h,50GiB", b)
		}
	}
	*k = read
	return nil
}

// MarshalText writes what is kept as it is read.
func (k Keep) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

func (k Keep) String() string {
	switch {
	case k == Keep{}:
		return "off"
	case k.Bytes == 0:
		return k.Age.String()
	case k.Age == 0:
		return k.Bytes.String()
	}
	return k.Age.String() + "," + k.Bytes.String()
}
