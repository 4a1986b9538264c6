package derive

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"rolltap/internal/jsonx"
)

// ErrRow says that a row names its rollout in a way that no rollout has. Such a row is never sanitised: nobody would find what
// was written under the name made of it.
var ErrRow = errors.New("not a rollout id")

// RolloutID is the id of the rollout that a row of a run is about, "" when the row tells none. An explicit _ng_rollout_id comes
// first, else it is made of _ng_task_index and _ng_rollout_index; an _ng_attempt_index above 0 is appended. Ids are checked by
// the caller: one that is made of indexes may be none that a store takes.
func RolloutID(row []byte) (string, error) {
	var got [4][]byte
	jsonx.GetAll(row, []string{"_ng_rollout_id", "_ng_task_index", "_ng_rollout_index", "_ng_attempt_index"}, got[:])
	id := ""
	switch {
	case !jsonx.IsNull(got[0]):
		s, ok := jsonx.Text(got[0])
		if !ok || !explicit(s) {
			return "", fmt.Errorf("_ng_rollout_id: %w", ErrRow)
		}
		id = s
	case jsonx.IsNull(got[1]) || jsonx.IsNull(got[2]):
		return "", nil
	default:
		id = rendered(got[1]) + "-" + rendered(got[2])
	}
	attempt, ok := attemptOf(got[3])
	if !ok {
		return "", fmt.Errorf("_ng_attempt_index: %w", ErrRow)
	}
	if attempt > 0 {
		id += "-a" + strconv.FormatInt(attempt, 10)
	}
	return id, nil
}

// explicit is the rule for ids that a caller chose. Their length is no matter here.
func explicit(s string) bool {
	for i := range len(s) {
		c := s[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !letter && (i == 0 || !strings.ContainsRune("._-", rune(c))) {
			return false
		}
	}
	return s != ""
}

// rendered is how an index reads in an id.
func rendered(raw []byte) string {
	if s, ok := jsonx.Text(raw); ok {
		return s
	}
	return string(raw)
}

// attemptOf is an attempt's number: null is 0, a float loses its fraction, a text is read.
func attemptOf(raw []byte) (int64, bool) {
	if n, ok := jsonx.Int(raw); ok {
		return n, true
	}
	if s, ok := jsonx.Text(raw); ok {
		n, err := strconv.ParseInt(strings.TrimSpace(s), 10, 64)
		return n, err == nil
	}
	f, ok := number(raw)
	if f == nil {
		return 0, ok
	}
	if !ok || math.Abs(*f) >= 1<<53 {
		return 0, false
	}
	return int64(*f), true
}
