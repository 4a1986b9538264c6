package trajectory

import (
	"strings"
	"testing"
)

// TestRecordedSessions: of every recorded history the calls that made it are turns, one after the other, however often each of them was
// asked again, and a compaction is none.
func TestRecordedSessions(t *testing.T) {
	looked := 0
	for _, rec := range recordedRequests(t) {
		steps, _ := rec.steps()
		compaction := strings.Contains(rec.Note, "compaction")
		if len(steps) == 0 {
			continue
		}
		looked++
		last := rec.with(rec.Body[rec.list()].([]any))
		rec.restore(last)
		steps, _ = rec.steps()
		turns := len(steps) + 1
		if compaction {
			turns--
		}
		t.Run(rec.name, func(t *testing.T) {
			t.Run("as it was", func(t *testing.T) {
				s := rec.session(t)
				for _, st := range steps {
					s.call(st.request, rec.answer(st.run), "ok")
				}
				s.call(last, rec.says("That is all that there is to say here."), "ok")
				rec.check(t, s, turns, 0)
			})
			t.Run("every call asked again", func(t *testing.T) {
				s := rec.session(t)
				for _, st := range steps {
					s.call(st.request, nil, "upstream_error")
					s.call(st.request, rec.says("An answer that the client threw away."), "ok")
					s.call(st.request, rec.says("The beginning of an ans"), "upstream_cut")
					s.call(st.request, rec.answer(st.run), "ok")
				}
				s.call(last, rec.says("Nobody took this one."), "ok")
				s.call(last, rec.says("That is all that there is to say here."), "ok")
				r := rec.check(t, s, turns, 0)
				for i := range steps {
					if got := strings.Fields(roles(r))[4*i : 4*i+4]; strings.Join(got, " ") != "failed retry retry turn" {
						t.Errorf("turn %d: %s", i+1, got)
					}
				}
			})
			t.Run("answers broke off behind what was kept", func(t *testing.T) {
				s := rec.session(t)
				for _, st := range steps {
					s.call(st.request, rec.answer(st.run), "upstream_cut")
				}
				s.call(last, rec.says("That is all that there is to say here."), "ok")
				rec.check(t, s, turns, 0)
			})
			if compaction {
				return
			}
			t.Run("compacted", func(t *testing.T) {
				s := rec.session(t)
				for _, st := range steps {
					s.call(st.request, rec.answer(st.run), "ok")
				}
				items, _ := rec.Body[rec.list()].([]any)
				const summary = "The user wants a greeting; one command was run, and it printed it."
				s.call(rec.with(append(append([]any(nil), items...), rec.asks("Words that no reader knows."))), rec.says("<analysis>hm</analysis>\n<summary>\n"+summary+"\n</summary>"), "ok")
				anew := rec.with([]any{rec.asks("This session is being continued.\n\nSummary:\n" + summary + "\n\nGo on.")})
				s.call(anew, rec.says("So I go on from the summary alone."), "ok")
				r := s.read()
				if got := r.Count(RoleTurn); got != len(steps)+1 || r.Count(RoleCompaction) != 1 {
					t.Errorf("%s: want %d turns and a compaction", roles(r), len(steps)+1)
				}
				if len(r.Branches) != 2 || r.Branches[1].Cause != "compaction" || r.Branches[1].From != len(steps) {
					t.Errorf("branches %+v", r.Branches)
				}
			})
		})
	}
	if looked < 40 {
		t.Errorf("only %d histories", looked)
	}
}

// restore gives a compaction the words that it begins with, which the neutral texts lack, and takes from the calls before it what marks
// the compaction alone.
func (r *recorded) restore(last map[string]any) {
	if !strings.Contains(r.Note, "compaction") {
		return
	}
	if items := last[r.list()].([]any); r.Dialect == "messages" {
		content := items[len(items)-1].(map[string]any)["content"].([]any)
		content[len(content)-1].(map[string]any)["text"] = "CRITICAL: Respond with TEXT ONLY. Do NOT call any tools."
	}
	delete(r.Body, "client_metadata")
}

// check: so many turns in one line.
func (r *recorded) check(t *testing.T, s *session, turns, changed int) *Rollout {
	t.Helper()
	got := s.read()
	if n := got.Count(RoleTurn); n != turns {
		t.Errorf("%d turns, want %d: %s, gaps %s", n, turns, roles(got), codes(got))
	}
	if len(got.Branches) != 1 || got.Branches[0].Turns != turns {
		t.Errorf("branches %+v", got.Branches)
	}
	if r.Note != "" && strings.Contains(r.Note, "compaction") && strings.Contains(r.name, "codex") && got.Count(RoleCompaction) == 0 {
		t.Errorf("no compaction: %s", roles(got))
	}
	return got
}

// TestNeutralCompaction: where the words of a compaction are not known and nothing follows it, it is still no turn.
func TestNeutralCompaction(t *testing.T) {
	for _, rec := range recordedRequests(t) {
		if rec.name != "claude-code-9" {
			continue
		}
		s := rec.session(t)
		steps, last := rec.steps()
		s.call(steps[0].request, rec.answer(steps[0].run), "ok")
		s.call(last, rec.says("A summary that nobody repeats."), "ok")
		if r := s.read(); roles(r) != "turn dropped" || codes(r) != GapTurnUnproven {
			t.Errorf("%s: %s", roles(r), codes(r))
		}
		return
	}
	t.Fatal("not recorded")
}
