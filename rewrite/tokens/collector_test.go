package tokens

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"rolltap/rewrite/canon"
)

// answer is a whole answer whose parts a test may change.
type answer struct{ top, choice, message, usage string }

const (
	promptIDs = `"prompt_token_ids":[901,17,902]`
	tokenIDs  = `"token_ids":[77003,55]`
	lps       = `"logprobs":{"content":[{"token":"a","logprob":-0.5},{"token":"b","logprob":-1.25}]}`
	named     = `"logprobs":{"content":[{"token":"token_id:77003","logprob":-0.5},{"token":"token_id:55","logprob":-1.25}]}`
	bundle    = `"prompt_token_ids":[901,17,902],"generation_token_ids":[77003,55],"generation_log_probs":[-0.5,-1.25]`
)

func (a answer) bytes() []byte {
	if a.usage == "" {
		a.usage = `{"prompt_tokens":3,"completion_tokens":2}`
	}
	return fmt.Appendf(nil, `{"id":"x","choices":[{"index":0,"message":{"content":"ab"%s},"finish_reason":"stop"%s}],"usage":%s%s}`,
		comma(a.message), comma(a.choice), a.usage, comma(a.top))
}

func comma(s string) string {
	if s == "" {
		return s
	}
	return "," + s
}

func TestCollectorWhole(t *testing.T) {
	hidden := Wish{HiddenReasoning: true}
	for _, x := range []struct {
		name string
		a    answer
		w    Wish
		want Reason
	}{
		{"inline", answer{top: promptIDs, choice: tokenIDs + "," + lps}, Wish{}, ""},
		{"bundle", answer{message: bundle}, Wish{}, ""},
		{"bundle beside inline", answer{top: promptIDs, choice: tokenIDs + "," + lps, message: bundle}, Wish{}, ""},
		{"bundle beside named", answer{choice: named, message: bundle}, Wish{}, ""},
		{"inline beside named", answer{top: promptIDs, choice: tokenIDs + "," + named}, Wish{}, ""},
		{"named", answer{choice: named}, Wish{}, ""},
		{"named, hidden and whole", answer{choice: named}, hidden, ""},
		{"whole although reasoning is hidden", answer{top: promptIDs, choice: tokenIDs + "," + lps}, hidden, ""},
		{"strings of digits", answer{top: `"prompt_token_ids":["901","17", 902]`, choice: `"token_ids":["77003","55"],` + lps}, Wish{}, ""},
		{"white space", answer{top: `"prompt_token_ids" : [ 901 , 17,902 ] `, choice: `"token_ids":[77003 ,55],` + lps}, Wish{}, ""},
		{"no usage", answer{top: promptIDs, choice: tokenIDs + "," + lps, usage: "null"}, Wish{}, ""},
		{"nothing generated", answer{top: promptIDs, choice: `"token_ids":[],"logprobs":{"content":[]}`, usage: `{"completion_tokens":0}`}, Wish{}, ""},
		{"the last of equal names", answer{top: `"prompt_token_ids":[1],` + promptIDs, choice: `"token_ids":[1],` + tokenIDs + `,"logprobs":{"content":[{"logprob":null}]},` + lps}, Wish{}, ""},

		{"nothing", answer{}, Wish{}, NoTokenIDs},
		{"nulls", answer{top: `"prompt_token_ids":null`, choice: `"token_ids":null,"logprobs":null`}, Wish{}, NoTokenIDs},
		{"log probabilities alone", answer{choice: lps}, Wish{}, NoTokenIDs},
		{"a prompt alone", answer{top: promptIDs, choice: lps}, Wish{}, NoTokenIDs},
		{"a prompt beside named", answer{top: promptIDs, choice: named}, Wish{}, NoTokenIDs},
		{"one entry of two is named", answer{choice: `"logprobs":{"content":[{"token":"token_id:7","logprob":-1},{"token":"b","logprob":-1}]}`}, Wish{}, NoTokenIDs},
		{"no prompt", answer{choice: tokenIDs + "," + lps}, Wish{}, NoPromptIDs},
		{"an empty prompt", answer{top: `"prompt_token_ids":[]`, choice: tokenIDs + "," + lps}, Wish{}, NoPromptIDs},
		{"no log probabilities", answer{top: promptIDs, choice: tokenIDs}, Wish{}, NoLogprobs},
		{"log probabilities null", answer{top: promptIDs, choice: tokenIDs + `,"logprobs":{"content":null}`}, Wish{}, NoLogprobs},
		{"log probabilities of the old form", answer{top: promptIDs, choice: tokenIDs + `,"logprobs":{"token_logprobs":[-1,-1]}`}, Wish{}, NoLogprobs},
		{"one log probability too few", answer{top: promptIDs, choice: tokenIDs + `,"logprobs":{"content":[{"logprob":-1}]}`}, Wish{}, LogprobsMismatch},
		{"one too many", answer{top: promptIDs, choice: `"token_ids":[5],` + lps}, Wish{}, LogprobsMismatch},
		{"usage counts more", answer{top: promptIDs, choice: tokenIDs + "," + lps, usage: `{"completion_tokens":9}`}, Wish{}, CountMismatch},
		{"usage counts fewer", answer{top: promptIDs, choice: tokenIDs + "," + lps, usage: `{"completion_tokens":1}`}, Wish{}, CountMismatch},
		{"usage of a bundle", answer{message: bundle, usage: `{"completion_tokens":1}`}, Wish{}, CountMismatch},
		{"usage of named", answer{choice: named, usage: `{"completion_tokens":1}`}, Wish{}, CountMismatch},
		{"hidden, none", answer{top: promptIDs}, hidden, HiddenReasoning},
		{"hidden, some", answer{top: promptIDs, choice: tokenIDs + "," + lps, usage: `{"completion_tokens":9}`}, hidden, HiddenReasoning},

		{"a bundle without a prompt", answer{message: `"generation_token_ids":[1,2],"generation_log_probs":[-1,-2]`}, Wish{}, NoPromptIDs},
		{"a bundle without ids", answer{message: `"prompt_token_ids":[1,2],"generation_log_probs":[-1,-2]`}, Wish{}, NoTokenIDs},
		{"a bundle without log probabilities", answer{message: `"prompt_token_ids":[1,2],"generation_token_ids":[1,2]`}, Wish{}, NoLogprobs},
		{"a bundle in part beside inline", answer{top: promptIDs, choice: tokenIDs + "," + lps, message: `"prompt_token_ids":[901,17,902]`}, Wish{}, NoTokenIDs},
		{"bundle and inline differ", answer{top: promptIDs, choice: `"token_ids":[77003,56],` + lps, message: bundle}, Wish{}, ConflictingSources},
		{"bundle and prompt differ", answer{top: `"prompt_token_ids":[1]`, message: bundle}, Wish{}, ConflictingSources},
		{"bundle and named differ", answer{choice: strings.Replace(named, ":55", ":56", 1), message: bundle}, Wish{}, ConflictingSources},
		{"inline and named differ", answer{top: promptIDs, choice: tokenIDs + "," + strings.Replace(named, ":55", ":56", 1)}, Wish{}, ConflictingSources},

		{"a negative id", answer{top: promptIDs, choice: `"token_ids":[77003,-5],` + lps}, Wish{}, InvalidIDs},
		{"a fraction", answer{top: promptIDs, choice: `"token_ids":[77003,5.0],` + lps}, Wish{}, InvalidIDs},
		{"an exponent", answer{top: promptIDs, choice: `"token_ids":[77003,5e1],` + lps}, Wish{}, InvalidIDs},
		{"a null id", answer{top: promptIDs, choice: `"token_ids":[77003,null],` + lps}, Wish{}, InvalidIDs},
		{"a boolean id", answer{top: promptIDs, choice: `"token_ids":[77003,true],` + lps}, Wish{}, InvalidIDs},
		{"an empty text", answer{top: promptIDs, choice: `"token_ids":[77003,""],` + lps}, Wish{}, InvalidIDs},
		{"a text", answer{top: promptIDs, choice: `"token_ids":[77003,"0x5"],` + lps}, Wish{}, InvalidIDs},
		{"a text with zeros", answer{top: promptIDs, choice: `"token_ids":[77003,"05"],` + lps}, Wish{}, InvalidIDs},
		{"an id beyond all integers", answer{top: promptIDs, choice: `"token_ids":[77003,12345678901234567890],` + lps}, Wish{}, InvalidIDs},
		{"a list in the list", answer{top: promptIDs, choice: `"token_ids":[[77003,55]],` + lps}, Wish{}, InvalidIDs},
		{"no list", answer{top: `"prompt_token_ids":{"0":1}`, choice: tokenIDs + "," + lps}, Wish{}, InvalidIDs},
		{"a text for a list", answer{top: promptIDs, choice: `"token_ids":"1,2",` + lps}, Wish{}, InvalidIDs},
		{"in a bundle", answer{message: strings.Replace(bundle, "55", "-55", 1)}, Wish{}, InvalidIDs},

		{"a null log probability", answer{top: promptIDs, choice: tokenIDs + "," + strings.Replace(lps, "-0.5", "null", 1)}, Wish{}, InvalidLogprobs},
		{"a boolean", answer{top: promptIDs, choice: tokenIDs + "," + strings.Replace(lps, "-0.5", "true", 1)}, Wish{}, InvalidLogprobs},
		{"a text for a number", answer{top: promptIDs, choice: tokenIDs + "," + strings.Replace(lps, "-0.5", `"-0.5"`, 1)}, Wish{}, InvalidLogprobs},
		{"infinity in disguise", answer{top: promptIDs, choice: tokenIDs + "," + strings.Replace(lps, "-0.5", "-1e999", 1)}, Wish{}, InvalidLogprobs},
		{"infinity, written out", answer{top: promptIDs, choice: tokenIDs + "," + strings.Replace(lps, "-0.5", "-"+strings.Repeat("9", 400), 1)}, Wish{}, InvalidLogprobs},
		{"missing", answer{top: promptIDs, choice: tokenIDs + "," + strings.Replace(lps, `,"logprob":-0.5`, "", 1)}, Wish{}, InvalidLogprobs},
		{"an entry that is none", answer{top: promptIDs, choice: tokenIDs + `,"logprobs":{"content":[-0.5,-0.25]}`}, Wish{}, InvalidLogprobs},
		{"content that is no list", answer{top: promptIDs, choice: tokenIDs + `,"logprobs":{"content":"x"}`}, Wish{}, InvalidLogprobs},
		{"logprobs that are no object", answer{top: promptIDs, choice: tokenIDs + `,"logprobs":[-0.5,-0.25]`}, Wish{}, InvalidLogprobs},
		{"a null in a bundle", answer{message: strings.Replace(bundle, "-1.25", "null", 1)}, Wish{}, InvalidLogprobs},

		{"an error beside", answer{top: promptIDs + `,"error":{"message":"x"}`, choice: tokenIDs + "," + lps}, Wish{}, UpstreamError},
		{"another index", answer{top: promptIDs, choice: `"index":1,` + tokenIDs + "," + lps}, Wish{}, SeveralChoices},
	} {
		c := NewCollector(1<<16, x.w)
		c.Whole(x.a.bytes())
		r := c.Result()
		if r.Reason != x.want {
			t.Errorf("%s: reason %q, want %q", x.name, r.Reason, x.want)
		}
		if r.Reason == "" && x.name != "nothing generated" {
			if string(r.Generated) != "[77003,55]" || string(r.Logprobs) != "[-0.5,-1.25]" || r.GeneratedLen != 2 || r.LogprobsLen != 2 {
				t.Errorf("%s: %s %s", x.name, r.Generated, r.Logprobs)
			}
			if r.NeedsPrompt != (r.Source == Named) || !r.NeedsPrompt && (string(r.Prompt) != "[901,17,902]" || r.PromptLen != 3) {
				t.Errorf("%s: prompt %s, needed %v", x.name, r.Prompt, r.NeedsPrompt)
			}
		}
	}
}

func TestCollectorUnreadable(t *testing.T) {
	whole := answer{top: promptIDs, choice: tokenIDs + "," + lps}.bytes()
	for _, body := range []string{
		"", "null", "[]", "[DONE]", string(whole[:len(whole)-1]), string(whole) + "x", "\xef\xbb\xbf" + string(whole),
		strings.Replace(string(whole), "-0.5", "NaN", 1), strings.Replace(string(whole), "-0.5", "-Infinity", 1),
		strings.Replace(string(whole), "[77003,55]", "[77003,055]", 1), strings.Replace(string(whole), "[77003,55]", "[77003,55,]", 1),
		strings.Replace(string(whole), `"ab"`, "\"\xff\"", 1), strings.Replace(string(whole), `"x"`, `"x"`+strings.Repeat("[", 600), 1),
	} {
		c := NewCollector(1<<16, Wish{})
		c.Whole([]byte(body))
		if r := c.Result(); r.Reason != Unreadable {
			t.Errorf("%.60q: reason %q", body, r.Reason)
		}
	}
}

// events is a stream whose events may be left out or changed.
func events() []string {
	return []string{
		`{"choices":[{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}],` + promptIDs + `}`,
		`{"choices":[{"index":0,"delta":{"content":"a"},"logprobs":{"content":[{"token":"a","logprob":-0.5}]},"finish_reason":null,"token_ids":[77003]}]}`,
		`{"choices":[{"index":0,"delta":{},"logprobs":{"content":[{"token":"b","logprob":-1.25}]},"finish_reason":"stop","token_ids":[55]}]}`,
		`{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2}}`,
		`[DONE]`,
	}
}

func TestCollectorStream(t *testing.T) {
	all := events()
	with := func(i int, event string) []string { return slices.Insert(slices.Clone(all), i, event) }
	without := func(i ...int) []string {
		var left []string
		for k, e := range all {
			if !slices.Contains(i, k) {
				left = append(left, e)
			}
		}
		return left
	}
	for _, x := range []struct {
		name   string
		events []string
		want   Reason
	}{
		{"whole", all, ""},
		{"without its last mark", without(4), ""},
		{"without usage", without(3), ""},
		{"the prompt twice", with(1, all[0]), ""},
		{"empty data", with(1, ""), ""},
		{"an event that says nothing", with(1, `{"choices":[]}`), ""},
		{"an empty last list", with(3, `{"choices":[{"index":0,"delta":{},"logprobs":{"content":[]},"finish_reason":"abort","token_ids":[]}]}`), ""},

		{"cut", all[:2], Truncated},
		{"cut before usage and mark", all[:3], Truncated},
		{"a mark, but no finish", without(2), Truncated},
		{"an error", with(2, `{"error": {"message": "x", "code": 500}}`), UpstreamError},
		{"another prompt", with(1, `{"choices":[],"prompt_token_ids":[1]}`), ConflictingSources},
		{"two choices", with(1, `{"choices":[{"index":1,"delta":{}}]}`), SeveralChoices},
		{"two choices at once", with(1, `{"choices":[{"index":0,"delta":{}},{"index":0,"delta":{}}]}`), SeveralChoices},
		{"no JSON", with(1, `{"choices":[}`), Unreadable},
		{"a lost event", without(1), CountMismatch},
		{"no role event", without(0), NoPromptIDs},
		{"a lost id", append(slices.Clone(all[:2]), strings.Replace(all[2], "[55]", "[]", 1), all[3], all[4]), LogprobsMismatch},
		{"nothing", nil, Truncated},
	} {
		c := NewCollector(1<<16, Wish{Streamed: true})
		for _, e := range x.events {
			data := []byte(e)
			c.Event(data)
			copy(data, bytes.Repeat([]byte{'x'}, len(data))) // it is free afterwards
			c.Result()                                       // may be asked at any time
		}
		r := c.Result()
		if r.Reason != x.want {
			t.Errorf("%s: reason %q, want %q", x.name, r.Reason, x.want)
		}
		if r.Reason == "" && (string(r.Prompt) != "[901,17,902]" || string(r.Generated) != "[77003,55]" || string(r.Logprobs) != "[-0.5,-1.25]") {
			t.Errorf("%s: %s %s %s", x.name, r.Prompt, r.Generated, r.Logprobs)
		}
	}
}

// TestCollectorLimit: what is too much is let go of, at whatever place it becomes that.
func TestCollectorLimit(t *testing.T) {
	for limit := range int64(300) {
		c := NewCollector(limit, Wish{})
		for _, e := range events() {
			c.Event([]byte(e))
		}
		r := c.Result()
		switch r.Reason {
		case "":
			if limit < 40 {
				t.Errorf("limit %d: whole", limit)
			}
		case TooLarge:
			if r.Prompt != nil || r.Generated != nil || r.Logprobs != nil || limit == 299 {
				t.Errorf("limit %d: %+v", limit, r)
			}
		default:
			t.Errorf("limit %d: reason %q", limit, r.Reason)
		}
	}
}

func TestCollectorExtras(t *testing.T) {
	const span = `[{"version":"step-7","start":0,"end":2}]`
	for _, x := range []struct{ name, body, experts, versions string }{
		{"choice", `{"choices":[{"routed_experts":"k05V","weight_versions":` + span + `}]}`, `"k05V"`, span},
		{"top", `{"choices":[{"routed_experts":null}],"weight_versions":` + span + `}`, "", span},
		{"message", `{"choices":[{"message":{"routed_experts":[[1,2]]}}]}`, "[[1,2]]", ""},
		{"meta_info", `{"choices":[{"meta_info":{"weight_versions":` + span + `}}]}`, "", span},
	} {
		for _, stream := range []bool{false, true} {
			c := NewCollector(1<<16, Wish{})
			if stream {
				c.Event([]byte(x.body))
			} else {
				c.Whole([]byte(x.body))
			}
			if r := c.Result(); string(r.Experts) != x.experts || string(r.WeightVersions) != x.versions {
				t.Errorf("%s: experts %s, versions %s", x.name, r.Experts, r.WeightVersions)
			}
		}
	}
}

func TestSetPrompt(t *testing.T) {
	for _, x := range []struct {
		ids    string
		n      int
		choice string
		want   Reason
	}{
		{"[901,17,902]", 3, named, ""},
		{"[901,17]", 2, named, NoPromptIDs},
		{"[]", 0, named, NoPromptIDs},
		{"[901,17,902]", 3, tokenIDs + "," + lps, NoPromptIDs}, // a source in part stays one
	} {
		c := NewCollector(1<<16, Wish{})
		c.Whole(answer{choice: x.choice}.bytes())
		r := c.Result()
		r.SetPrompt([]byte(x.ids), x.n)
		if r.Reason != x.want || r.NeedsPrompt || x.want == "" && (string(r.Prompt) != x.ids || r.PromptLen != x.n) {
			t.Errorf("%s: %+v", x.ids, r)
		}
	}
}

func TestReasons(t *testing.T) {
	seen := map[Reason]bool{}
	for _, r := range Reasons() {
		if r == "" || seen[r] {
			t.Errorf("%q", r)
		}
		seen[r] = true
	}
	if r := NewCollector(0, Wish{}).Result(); r.Completion != canon.Unknown || r.PromptTokens != canon.Unknown || !seen[r.Reason] {
		t.Errorf("%+v", r)
	}
}
