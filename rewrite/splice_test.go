package rewrite

import (
	"errors"
	"testing"

	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
)

func TestSetMember(t *testing.T) {
	for _, tc := range []struct{ body, name, value, want string }{
		{`{}`, "a", `1`, `{"a":1}`},
		{`{ }`, "a", `1`, `{ "a":1}`},
		{`{"b": 2.0 }`, "a", `1`, `{"b": 2.0 ,"a":1}`},
		{`{"a":2,"b":{"a":3}}`, "a", `[1]`, `{"a":[1],"b":{"a":3}}`},
		{` { "b" : {"a":3} , "a" : "x" } `, "a", `1`, ` { "b" : {"a":3} , "a" : 1 } `},
		{`{"\u0061":2}`, "a", `1`, `{"\u0061":1}`},
		{`{"a":1,"a":2}`, "a", `3`, `{"a":1,"a":3}`},
		{`{}`, `"`, `1`, `{"\"":1}`},
	} {
		body := []byte(tc.body)
		if got := SetMember(body, tc.name, []byte(tc.value)); string(got) != tc.want || string(body) != tc.body {
			t.Errorf("%s, %s: %s; want %s", tc.body, tc.name, got, tc.want)
		}
		// A body that is a part of something longer.
		if got := SetMember([]byte("xx" + tc.body + "yy")[2:2+len(tc.body)], tc.name, []byte(tc.value)); string(got) != tc.want {
			t.Errorf("%s, a part: %s; want %s", tc.body, got, tc.want)
		}
	}
}

func TestDropMember(t *testing.T) {
	for _, tc := range []struct{ body, want string }{
		{`{"a":1}`, `{}`},
		{`{"a":1,"b":2}`, `{"b":2}`},
		{`{"b":2,"a":1}`, `{"b":2}`},
		{`{"b":2 , "a" : 1 , "c":3}`, `{"b":2 , "c":3}`},
		{`{ "a":[1,{"a":2}] , "c":3}`, `{  "c":3}`},
		{`{"a":1,"b":2,"a":3}`, `{"b":2}`},
		{`{"b":{"a":1}}`, `{"b":{"a":1}}`},
	} {
		if got := dropMember([]byte(tc.body), "a"); string(got) != tc.want || !jsonx.Valid(got) {
			t.Errorf("%s: %s; want %s", tc.body, got, tc.want)
		}
	}
}

func TestMergeExtras(t *testing.T) {
	for _, tc := range []struct {
		name             string
		extra, over      string
		body, meta, want string
	}{
		{"nothing", "", "", `{"a": 1.0}`, `{"user":"u"}`, `{"a": 1.0}`},
		{"extra_body", `{"top_p":0.1,"seed":1}`, "", `{"top_p":0.95}`, "", `{"top_p":0.95,"seed":1}`}, // vector 62
		{"override", "", `{"top_p":1.0}`, `{"top_p":0.95,"x": 2}`, "", `{"top_p":1.0,"x": 2}`},
		{"both", `{"a":1,"b":1}`, `{"b":2,"c":2}`, `{"c":0}`, "", `{"c":2,"a":1,"b":2}`},
		{"chat_template_kwargs of the metadata", `{"chat_template_kwargs":{"enable_thinking":true,"p":"v"}}`, "", `{}`, // vector 61
			`{"chat_template_kwargs":"{\"enable_thinking\": false}"}`, `{"chat_template_kwargs":{"enable_thinking":false,"p":"v"}}`},
		{"chat_template_kwargs of the request", `{"chat_template_kwargs":{"a":1,"b":1}}`, "", `{"chat_template_kwargs":{"b":2}}`, "", `{"chat_template_kwargs":{"a":1,"b":2}}`},
		{"chat_template_kwargs of override", "", `{"chat_template_kwargs":{"b":3}}`, `{"chat_template_kwargs":{"a":1,"b":2}}`, "", `{"chat_template_kwargs":{"a":1,"b":3}}`},
		{"extra_body of the metadata", `{"a":1,"b":1,"chat_template_kwargs":{"x":1}}`, "", `{"c":0}`, `{"extra_body":"{\"b\":2,\"c\":2,\"d\":\"\\u00e9\",\"chat_template_kwargs\":{\"y\":2}}"}`,
			`{"c":0,"a":1,"b":2,"chat_template_kwargs":{"x":1,"y":2},"d":"\u00e9"}`},
		{"a member twice", `{"a":1,"a":2}`, "", `{}`, "", `{"a":2}`},
	} {
		p := DefaultPolicy()
		if tc.extra != "" {
			p.ExtraBody = canon.Raw(tc.extra)
		}
		if tc.over != "" {
			p.Override = canon.Raw(tc.over)
		}
		if err := p.Validate(); err != nil {
			t.Fatal(err)
		}
		var meta canon.Raw
		if tc.meta != "" {
			meta = canon.Raw(tc.meta)
		}
		got, err := p.mergeExtras([]byte(tc.body), meta)
		if err != nil || string(got) != tc.want {
			t.Errorf("%s: %s, %v; want %s", tc.name, got, err, tc.want)
		}
	}
}

func TestMetadataExtras(t *testing.T) {
	p := DefaultPolicy()
	for _, tc := range []struct{ meta, param string }{
		{`{"extra_body":"{"}`, "metadata.extra_body"}, {`{"extra_body":"[]"}`, "metadata.extra_body"}, {`{"extra_body":{}}`, "metadata.extra_body"}, {`{"chat_template_kwargs":"x"}`, "metadata.chat_template_kwargs"},
	} {
		var problem *canon.Problem
		if _, err := p.mergeExtras([]byte(`{}`), canon.Raw(tc.meta)); !errors.As(err, &problem) || problem.Param != tc.param || problem.Code != canon.CodeInvalid {
			t.Errorf("%s: %v", tc.meta, err)
		}
	}
	p.MetadataExtras = false
	if got, err := p.mergeExtras([]byte(`{}`), canon.Raw(`{"extra_body":"{\"a\":1}","chat_template_kwargs":"x"}`)); err != nil || string(got) != `{}` {
		t.Errorf("turned off: %s %v", got, err)
	}
}

func TestSamplingRulesSeeExtras(t *testing.T) { // vector 41
	p := DefaultPolicy()
	p.ExtraBody = canon.Raw(`{"top_k":5}`)
	body := []byte(`{"model":"us/aws/anthropic/eccn-claude-opus-4-8"}`)
	var problem *canon.Problem
	if _, err := p.Splice(body, "", canon.Messages, nil); !errors.As(err, &problem) || problem.Param != "top_k" || problem.Status != 400 {
		t.Errorf("error: %v", err)
	}
	if _, err := p.Splice(body, "", canon.Chat, nil); err != nil {
		t.Errorf("rules are for Messages upstreams: %v", err)
	}
	p.Sampling[1].Action = "drop"
	if got, err := p.Splice(body, "", canon.Messages, nil); err != nil || string(got) != string(body) {
		t.Errorf("drop: %s %v", got, err)
	}
}
