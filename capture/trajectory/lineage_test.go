package trajectory

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// The words of a Chat conversation.
func system(s string) any { return map[string]any{"role": "system", "content": s} }
func user(s string) any   { return map[string]any{"role": "user", "content": s} }
func says(s string) any   { return map[string]any{"role": "assistant", "content": s} }
func brings(id, s string) any {
	return map[string]any{"role": "tool", "tool_call_id": id, "content": s}
}
func calls(id, name, args string) any {
	return map[string]any{"role": "assistant", "content": nil, "tool_calls": []any{map[string]any{"id": id, "type": "function", "function": map[string]any{"name": name, "arguments": args}}}}
}

func talk(messages ...any) map[string]any {
	return map[string]any{"model": "m", "messages": messages, "tools": []any{map[string]any{"type": "function", "function": map[string]any{"name": "sh"}}}}
}

func reply(messages ...any) any {
	var choices []any
	for i, m := range messages {
		choices = append(choices, map[string]any{"index": i, "message": m, "finish_reason": "stop"})
	}
	return map[string]any{"object": "chat.completion", "choices": choices}
}

func TestLineage(t *testing.T) {
	ls := calls("call_1", "sh", `{"cmd": "ls -la"}`)
	lsAgain := calls("call1", "sh", `{"cmd":"ls -la"}`) // as OpenClaw writes it
	sub := func(agent, parent string) func(*session) {
		return func(s *session) { s.client = map[string]string{"session": "s", "agent": agent, "parent_agent": parent} }
	}
	main := func(s *session) { s.client = map[string]string{"session": "s"} }
	for _, c := range []struct {
		why      string
		do       func(s *session)
		roles    string
		branches string // cause and turns of each
		gaps     string
	}{
		{"ids and arguments may be spelled anew, and a transient message may move", func(s *session) {
			s.call(talk(user("hi"), user("now: 1")), reply(ls), "ok")
			s.call(talk(user("hi"), lsAgain, brings("call1", "a b"), user("now: 2")), reply(says("two files")), "ok")
		}, "turn turn", "start 2", GapHistoryChanged},
		{"arguments that were no JSON come back as something else", func(s *session) {
			s.call(talk(user("hi")), reply(calls("c1", "sh", `{"cmd":"l`)), "upstream_cut")
			s.call(talk(user("hi"), calls("c1", "sh", `{}`), brings("c1", "aborted")), reply(says("sorry")), "ok")
		}, "turn turn", "start 2", GapAnswerChanged},
		{"a beginning that nobody kept is no turn, though nothing follows", func(s *session) {
			s.call(talk(user("hi")), reply(says("I will")), "client_gone")
		}, "failed", "", GapTurnUnproven},
		{"several answers: the one in the history counts", func(s *session) {
			s.call(talk(user("hi")), reply(says("one way"), says("another way")), "ok")
			s.call(talk(user("hi"), says("another way"), user("go")), reply(says("done")), "ok")
		}, "turn turn", "start 2", ""},
		{"a conversation with examples in front", func(s *session) {
			s.call(talk(user("1+1"), says("2"), user("2+2")), reply(says("4")), "ok")
			s.call(talk(user("1+1"), says("2"), user("2+2"), says("4"), user("3+3")), reply(says("6")), "ok")
		}, "turn turn", "start 2", GapHistoryUnrecorded},
		{"an answer that was not recorded stands behind the parent's", func(s *session) {
			s.call(talk(user("hi")), reply(says("hello to you")), "ok")
			s.call(talk(user("hi"), says("hello to you"), user("a"), says("b"), user("c")), reply(says("d")), "ok")
		}, "turn turn", "start 2", GapAnswerUnrecorded},
		{"two lines from one turn", func(s *session) {
			s.call(talk(user("hi")), reply(says("hello to you")), "ok")
			s.call(talk(user("hi"), says("hello to you"), user("left")), reply(says("left it is")), "ok")
			s.call(talk(user("hi"), says("hello to you"), user("left"), says("left it is"), user("on")), reply(says("end")), "ok")
			s.call(talk(user("hi"), says("hello to you"), user("right")), reply(says("right it is")), "ok")
		}, "turn turn turn turn", "start 3, fork 2", ""},
		{"what the client did not take is no turn", func(s *session) {
			s.call(talk(user("hi")), reply(says("hello to you")), "ok")
			s.call(talk(user("hi"), says("hello to you"), user("name this talk")), reply(says("A greeting")), "ok")
			s.call(talk(user("hi"), says("hello to you"), user("go on")), reply(says("I did")), "ok")
		}, "turn dropped turn", "start 2", GapTurnUnproven},
		{"a history without its middle", func(s *session) {
			s.call(talk(user("hi")), reply(calls("c1", "sh", `{"cmd":"a"}`)), "ok")
			s.call(talk(user("hi"), calls("c1", "sh", `{"cmd":"a"}`), brings("c1", "A")), reply(calls("c2", "sh", `{"cmd":"b"}`)), "ok")
			s.call(talk(user("hi"), calls("c2", "sh", `{"cmd":"b"}`), brings("c2", "B")), reply(says("end")), "ok")
		}, "turn turn turn", "start 2, shortened 1", ""},
		{"the same asked twice at once, and nothing follows", func(s *session) {
			s.call(talk(user("hi")), reply(says("one")), "ok")
			s.clock -= 1.5
			s.call(talk(user("hi")), reply(says("two")), "ok")
		}, "retry turn", "start 1", GapRetryUndecided},
		{"the same said twice to the same: the last is taken", func(s *session) {
			s.call(talk(user("hi")), reply(says("one")), "ok")
			s.call(talk(user("hi")), reply(says("one")), "ok")
			s.call(talk(user("hi"), says("one"), user("go")), reply(says("end")), "ok")
		}, "retry turn turn", "start 2", GapParentAmbiguous},
		{"the same asked twice, and both gone on from", func(s *session) {
			s.call(talk(user("hi")), reply(says("one")), "ok")
			s.call(talk(user("hi")), reply(says("two")), "ok")
			s.call(talk(user("hi"), says("one"), user("go")), reply(says("end of one")), "ok")
			s.call(talk(user("hi"), says("two"), user("go")), reply(says("end of two")), "ok")
		}, "turn turn turn turn", "start 2, start 2", ""},
		{"calls that have nothing to do with each other", func(s *session) {
			for i := range 3 {
				s.call(talk(user(fmt.Sprint("question ", i))), reply(says("Done.")), "ok")
			}
		}, "turn turn turn", "start 1, start 1, start 1", ""},
		{"an agent by its ids, started by the prompt in a tool call", func(s *session) {
			main(s)
			s.call(talk(user("hi")), reply(calls("t1", "task", `{"prompt":"Count the files in this folder."}`)), "ok")
			sub("a1", "")(s)
			s.call(talk(user("Count the files in this folder.")), reply(calls("x1", "sh", `{}`)), "ok")
			s.call(talk(user("Count the files in this folder."), calls("x1", "sh", `{}`), brings("x1", "7")), reply(says("There are seven files in it.")), "ok")
			main(s)
			s.call(talk(user("hi"), calls("t1", "task", `{"prompt":"Count the files in this folder."}`), brings("t1", "There are seven files in it.")), reply(says("seven")), "ok")
		}, "turn turn turn turn", "start 2, start 2", ""},
		{"an agent of which nothing tells who started it", func(s *session) {
			sub("a1", "a0")(s)
			s.call(talk(user("work")), reply(says("done")), "ok")
		}, "turn", "start 1", GapHierarchy},
		{"an agent without ids that reports", func(s *session) {
			s.call(talk(user("hi")), reply(calls("t1", "task", `{"description":"count"}`)), "ok")
			s.call(talk(system("You count."), user("count")), reply(calls("x1", "sh", `{}`)), "ok")
			s.call(talk(system("You count."), user("count"), calls("x1", "sh", `{}`), brings("x1", "7")), reply(says("There are seven files in it.")), "ok")
			s.call(talk(user("hi"), calls("t1", "task", `{"description":"count"}`), brings("t1", "There are seven files in it.")), reply(says("seven")), "ok")
		}, "turn turn turn turn", "start 2, start 2", ""},
		{"a labelled session that begins anew without a word", func(s *session) {
			main(s)
			s.call(talk(user("hi")), reply(says("hello to you")), "ok")
			s.call(talk(user("hi"), says("hello to you"), user("go")), reply(says("gone")), "ok")
			s.call(talk(user("something else")), reply(says("fine")), "ok")
		}, "turn dropped turn", "start 1, start 1", GapTurnUnproven},
		{"a request that is no object", func(s *session) { s.call(nil, nil, "refused") }, "failed", "", GapUnreadable},
	} {
		t.Run(strings.ReplaceAll(c.why, " ", "_"), func(t *testing.T) {
			s := newSession(t, "chat")
			c.do(s)
			r := s.read()
			var lines []string
			for _, b := range r.Branches {
				lines = append(lines, fmt.Sprint(b.Cause, " ", b.Turns))
			}
			if got := roles(r); got != c.roles {
				t.Errorf("roles %q, want %q", got, c.roles)
			}
			if got := strings.Join(lines, ", "); got != c.branches {
				t.Errorf("branches %q, want %q", got, c.branches)
			}
			if got := codes(r); got != c.gaps {
				t.Errorf("gaps %q, want %q", got, c.gaps)
			}
		})
	}
}

// TestTools: a tool call has the result that its own line brings, and the time between its call and that.
func TestTools(t *testing.T) {
	s := newSession(t, "messages")
	use := func(id string) any {
		return map[string]any{"type": "tool_use", "id": id, "name": "Read", "input": map[string]any{"path": id}}
	}
	back := func(id string, bad bool) any {
		return map[string]any{"type": "tool_result", "tool_use_id": id, "content": "text of " + id, "is_error": bad}
	}
	ask := map[string]any{"role": "user", "content": "read"}
	both := []any{use("a"), use("b")}
	s.call(map[string]any{"messages": []any{ask}}, map[string]any{"content": both}, "ok")
	s.clock += 3
	s.call(map[string]any{"messages": []any{ask, map[string]any{"role": "assistant", "content": both}, map[string]any{"role": "user", "content": []any{back("a", false), back("b", true)}}}},
		map[string]any{"content": []any{map[string]any{"type": "text", "text": "read"}}}, "ok")
	r := s.read()
	a, b := r.Calls[0].Tools[0], r.Calls[0].Tools[1]
	if a.Result != 1 || b.Result != 1 || a.Bad || !b.Bad {
		t.Errorf("%+v %+v", a, b)
	}
	if ms, ok := r.Waited(0, &a); !ok || ms != 4000 {
		t.Errorf("%v ms, %v", ms, ok)
	}
	var w strings.Builder
	if err := r.WriteJSON(&w, s.dir, false); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Turns []struct {
			TurnNo   int   `json:"turn_no"`
			Question []any `json:"question"`
			Steps    int   `json:"step_count"`
		} `json:"turns"`
		Tools []struct {
			Status, Output string
			Duration       float64 `json:"duration_ms"`
		} `json:"tool_calls"`
	}
	if err := json.Unmarshal([]byte(w.String()), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Turns) != 2 || len(got.Turns[0].Question) != 1 || len(got.Turns[1].Question) != 1 || got.Turns[1].Steps != 2 {
		t.Errorf("turns %+v", got.Turns)
	}
	if len(got.Tools) != 2 || got.Tools[1].Status != "failed" || got.Tools[1].Output != "text of b" || got.Tools[0].Duration != 4000 {
		t.Errorf("tools %+v", got.Tools)
	}
}

func FuzzAdd(f *testing.F) {
	f.Add(`{"model_call_id":"a","dialect":"chat","started_at":1,"completed_at":2,"request":{"messages":[{"role":"user","content":"x"}]},"response":{"choices":[{"message":{"role":"assistant","content":"y"}}]}}`,
		`{"model_call_id":"b","dialect":"chat","started_at":3,"request":{"messages":[{"role":"user","content":"x"},{"role":"assistant","content":"y"},{"role":"user","content":[{"type":"image_url"}]}]},"response":{"choices":[{"message":{"tool_calls":[{"id":"1","function":{"name":"f","arguments":"{"}}]}}]}}`)
	f.Add(`{"dialect":"responses","request":{"input":[{"type":"function_call","call_id":"c","arguments":"[]"},{"type":"function_call_output","call_id":"c","output":"x"}]},"response":{"output":[{"type":"reasoning"},{}]}}`,
		`{"dialect":"messages","request":{"system":[1],"messages":[{"role":"assistant","content":[{"type":"tool_use","input":null}]},{}]},"response":{"content":[{"type":"thinking","thinking":"t"}]}}`)
	f.Fuzz(func(t *testing.T, one, two string) {
		s := &session{t: t, dir: t.TempDir(), lines: []string{one, two, one, two}}
		r := s.read()
		for i := range r.Calls {
			if c := &r.Calls[i]; c.Role == "" || c.Parent >= i || (c.Role == RoleTurn) != (c.Branch >= 0) {
				t.Errorf("call %d: %+v", i, c)
			}
		}
	})
}
