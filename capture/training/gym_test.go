package training

import (
	"os"
	"strings"
	"testing"

	"rolltap/capture"
)

// TestGymStore writes rollouts that NeMo Gym's own reader can judge, into the folder that TRAINING_GYM_DIR names, and holds what it writes to our
// own proof. Without that folder it is a temporary one.
//
// What Gym has to find: chain 3 calls and no mask, as deltas as well; masked 1 call and an incomplete capture; frozen 2 calls.
func TestGymStore(t *testing.T) {
	dir := os.Getenv("TRAINING_GYM_DIR")
	if dir == "" {
		dir = t.TempDir()
	}
	s := newStore(t, dir)
	exchanges, err := capture.Open(capture.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer exchanges.Close(t.Context())
	record := func(rollout, call string) {
		t.Helper()
		r := &capture.Record{
			Rollout: rollout, CallID: call, ModelRef: "m",
		}
		if err := exchanges.Append(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	for rollout, delta := range map[string]bool{"chain": false, "deltas": true} {
		c := &conversation{rollout: rollout, seed: 1}
		for range 3 {
			e := c.next(t, 40, 20, delta)
			e.Rolltap = []byte(`{"result":"ok","logprobs_mode":"raw","sampling":{"temperature":1.0,"top_k":null},"unknown":["top_k"]}`)
			begin(t, s, rollout, e.CallID)
			put(t, s, e)
			record(rollout, e.CallID)
		}
		if v := noProblems(t, dir, rollout); v.Incomplete || v.Entries != 3 {
			t.Errorf("%+v", v)
		}
	}
	begin(t, s, "masked", "c1")
	put(t, s, newEntry("masked", "c1", "[1,2]", "[3]"))
	record("masked", "c1")
	begin(t, s, "masked", "c2")
	record("masked", "c2")
	wantProblem(t, dir, "masked", "has no entry")

	for _, call := range []string{"c1", "c2", "c3"} {
		begin(t, s, "frozen", call)
		record("frozen", call)
	}
	put(t, s, newEntry("frozen", "c1", "[1,2]", "[3]"))
	e := newEntry("frozen", "c2", "[1,2,3,4]", "[5]")
	e.Parent, e.ParentCallID, e.Model = Resolved, "c1", "texts: \u0000\u001b\u2028é\U0001F600"
	e.OutputItems = []byte(`[{"type":"reasoning","summary":[]},{"type":"message","role":"assistant","content":"\u0000 \ud83d\ude00 ` + strings.Repeat("x", inlineMax) + `"}]`)
	e.TokenItem, e.RoutedExperts = 1, []byte("[[0,1],[2,3]]")
	put(t, s, e)
	if err := s.Withdraw(t.Context(), "frozen", "c3", "upstream_refused"); err != nil {
		t.Fatal(err)
	}
	if f := freeze(t, s, "frozen"); f.Incomplete || len(f.calls) != 2 {
		t.Errorf("%+v", f.Snapshot)
	}
	noProblems(t, dir, "frozen")
}
