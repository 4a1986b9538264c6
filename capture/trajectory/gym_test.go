package trajectory

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestGymCalls: the model calls of a trajectory are those that Gym projects from the same store, with a member of ours beside them.
func TestGymCalls(t *testing.T) {
	const gym = "../derive/testdata/gym"
	golden, err := filepath.Glob(gym + "/*.json")
	if err != nil || len(golden) < 10 {
		t.Fatalf("%d golden files, %v", len(golden), err)
	}
	compared := 0
	for _, path := range golden {
		id := strings.TrimSuffix(filepath.Base(path), ".json")
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var want struct {
			Trajectory struct {
				Trajectory struct {
					Version string           `json:"schema_version"`
					Calls   []map[string]any `json:"model_calls"`
				} `json:"ng_trajectory"`
			} `json:"trajectory"`
		}
		if err := json.Unmarshal(raw, &want); err != nil {
			t.Fatal(err)
		}
		r, err := Read(gym+"/store", id, nil)
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		if err := r.WriteJSON(&b, gym+"/store", true); err != nil {
			t.Fatal(err)
		}
		var got struct {
			Version string           `json:"schema_version"`
			Calls   []map[string]any `json:"model_calls"`
		}
		if err := json.Unmarshal([]byte(b.String()), &got); err != nil {
			t.Fatalf("%s: %v", id, err)
		}
		for _, c := range got.Calls {
			delete(c, "rolltap")
		}
		w := want.Trajectory.Trajectory
		if len(w.Calls) == 0 {
			continue // Gym's projection failed or there was nothing to project
		}
		compared += len(w.Calls)
		if d := cmp.Diff(w.Calls, got.Calls); d != "" || w.Version != got.Version {
			t.Errorf("%s (-want +got):\n%s", id, d)
		}
	}
	if compared < 14 {
		t.Errorf("only %d calls compared", compared)
	}
}

// TestGrowing: what is appended between two readings is not read, and a rollout that was written anew is told.
func TestGrowing(t *testing.T) {
	s := newSession(t, "chat")
	s.call(talk(user("hi")), reply(says("one")), "ok")
	r := s.read()
	s.call(talk(user("hi"), says("one"), user("go")), reply(says("two")), "ok")
	s.read()
	var b strings.Builder
	if err := r.WriteJSON(&b, s.dir, false); err != nil || strings.Count(b.String(), `"call_index"`) != 1 {
		t.Errorf("%v: %s", err, b.String())
	}
	s.lines = s.lines[1:]
	s.read()
	if err := r.WriteJSON(&b, s.dir, false); err == nil || !strings.Contains(err.Error(), "replaced") {
		t.Errorf("an answer of another attempt: %v", err)
	}
}
