package derive

import (
	"errors"
	"math"
	"strconv"
	"strings"

	"rolltap/capture"
	"rolltap/internal/jsonx"
)

// ErrUnusable says that a line is a JSON object and still no record: a member has a type that none has. It keeps its index.
var ErrUnusable = errors.New("a member of another type than records have")

// Call is what one record says. Raw values are parts of the line, nil for null; counts are -1 when unknown.
type Call struct {
	Index int // position among the lines that are not blank, damaged ones included

	ID, ResponseID, SessionID []byte // JSON strings
	Model, Dialect            []byte
	ResponseStatus, Finish    []byte // as the answer spells them
	Source, LocalReason       []byte
	Category                  []byte
	ModelRef                  ModelRef
	Status, UpstreamStatus    []byte // JSON integers
	UpstreamAttempted         []byte // true or false
	Started, Completed        []byte // Unix seconds, spelled as in the record
	Latency, TTFT             []byte // milliseconds
	Request, Response         []byte // objects
	RequestRaw, ResponseRaw   []byte // JSON strings
	Tokens                    Tokens
	Own                       Own

	Rests *capture.Rests // writes out what has rests; values have them when the Source refers, or reads records, and the line is long
	Lossy bool           // and then: lists in the bodies are not whole

	bodies *payloads // what is written of the bodies when they are not whole here; nil: they are
}

// ModelRef names a model server; both are JSON strings, nil when the record has none.
type ModelRef struct{ Type, Name []byte }

// Own is what only rolltap's records say, or what can be told of the others as well.
type Own struct {
	Known     bool   // the record is one of ours
	Outcome   string // derived from the category in other programs' records
	Finish    string // in Chat's words; "" is none
	Stream    bool
	Losses    []byte // JSON array, nil when there are none
	Truncated []byte // JSON array, nil when nothing is cut
	Usage     Usage
	Session   string
	Agent     string
	Parent    string // the agent that started Agent
	UserAgent string
	Path      string
	Upstream  string // dialect spoken there, "" when nothing was sent
	AskedFor  string // model that the upstream named, else that it was asked for
	Side      Side
}

// Usage is what a call consumed; -1 is unknown. Prompt includes what came from a cache.
type Usage struct{ Prompt, Completion, Cached, Reasoning int64 }

// recordKeys are the members of a record that are read.
func recordKeys() []string {
	return []string{"model_call_id", "dialect", "model_ref", "started_at", "completed_at", "latency_ms", "latency_ttft_ms",
		"status_code", "error_category", "request", "response", "client_session_id", "upstream_attempted", "response_source",
		"upstream_status_code", "local_response_reason", "request_raw", "response_raw", "rolltap"}
}

// Reader reads calls. It is not safe for concurrent use; the zero value is ready.
type Reader struct {
	NoSide bool // Own.Side is not looked for, which saves two passes over the request

	rests *capture.Rests
	keys  []string
	found [19][]byte
}

// Read makes a Call of a line, which is valid JSON. The error is ErrUnusable.
func (r *Reader) Read(line []byte, index int) (Call, error) {
	if r.keys == nil {
		r.keys = recordKeys()
	}
	clear(r.found[:])
	jsonx.GetAll(line, r.keys, r.found[:])
	f := &r.found
	c := Call{
		Index: index, Rests: r.rests, SessionID: ofKind(f[11], jsonx.KindString),
		Request: ofKind(f[9], jsonx.KindObject), Response: ofKind(f[10], jsonx.KindObject),
		RequestRaw: ofKind(f[16], jsonx.KindString), ResponseRaw: ofKind(f[17], jsonx.KindString),
	}
	ok := true
	must := func(v []byte, good bool) []byte {
		ok = ok && good
		return v
	}
	c.ID, c.Dialect = must(text(f[0])), must(text(f[1]))
	c.ModelRef, ok = modelRef(f[2], ok)
	c.Started, c.Completed = must(float(f[3])), must(float(f[4]))
	c.Latency, c.TTFT = must(float(f[5])), must(float(f[6]))
	c.Status, c.UpstreamStatus = must(integer(f[7])), must(integer(f[14]))
	c.Category, c.LocalReason = must(text(f[8])), must(text(f[15]))
	c.UpstreamAttempted = must(boolean(f[12]))
	c.Source = must(text(f[13]))
	if s := string(c.Source); c.Source != nil && s != `"upstream"` && s != `"local"` {
		ok = false
	}
	if !ok {
		return Call{Index: index}, ErrUnusable
	}
	c.answer()
	c.own(f[18])
	if !r.NoSide {
		c.Own.Side = c.side()
	}
	return c, nil
}

// answer reads what the derived record takes from the bodies.
func (c *Call) answer() {
	var got [7][]byte
	jsonx.GetAll(c.Response, []string{"id", "status", "stop_reason", "choices", "incomplete_details", "model", "usage"}, got[:])
	c.ResponseID, c.ResponseStatus = ofKind(got[0], jsonx.KindString), ofKind(got[1], jsonx.KindString)
	var first []byte
	if it := jsonx.Array(got[3]); it.Next() {
		first = it.Value()
	}
	for _, v := range [][]byte{got[2], jsonx.Get(first, "finish_reason"), jsonx.Get(got[4], "reason")} {
		if c.Finish = ofKind(v, jsonx.KindString); c.Finish != nil {
			break
		}
	}
	model := got[5]
	if !jsonx.Truthy(model) {
		model = jsonx.Get(c.Request, "model")
	}
	c.Model = ofKind(model, jsonx.KindString)
	c.Tokens = ReadTokens(got[6])
	if word(c.Dialect) == "gemini" {
		c.gemini()
	}
}

// gemini reads the same from an answer of Gemini, whose members have names of their own. The Gym reader knows none of them.
func (c *Call) gemini() {
	var got [4][]byte
	jsonx.GetAll(c.Response, []string{"responseId", "modelVersion", "candidates", "usageMetadata"}, got[:])
	if id := ofKind(got[0], jsonx.KindString); id != nil {
		c.ResponseID = id
	}
	if model := ofKind(got[1], jsonx.KindString); model != nil {
		c.Model = model
	}
	if it := jsonx.Array(got[2]); it.Next() {
		c.Finish = ofKind(jsonx.Get(it.Value(), "finishReason"), jsonx.KindString)
	}
	u := got[3]
	if u == nil {
		return
	}
	t := Tokens{
		In: count(jsonx.Get(u, "promptTokenCount")), Out: count(jsonx.Get(u, "candidatesTokenCount")), Total: count(jsonx.Get(u, "totalTokenCount")),
		Reasoning: count(jsonx.Get(u, "thoughtsTokenCount")), Cached: count(jsonx.Get(u, "cachedContentTokenCount")), CacheCreation: -1,
	}
	if t.Reasoning > 0 { // it is counted apart there
		t.Out = max(t.Out, 0) + t.Reasoning
	}
	if t.Total < 0 && t.In >= 0 && t.Out >= 0 {
		t.Total = t.In + t.Out
	}
	c.Tokens = t
}

// ofKind is raw when it is of the kind, else nil.
func ofKind(raw []byte, k jsonx.Kind) []byte {
	if jsonx.KindOf(raw) != k {
		return nil
	}
	return raw
}

// The functions below read a member that must have a type or be null. They take what the Gym reader takes: numbers in
// strings, booleans as numbers, whole floats as integers.

func text(raw []byte) ([]byte, bool) {
	if jsonx.IsNull(raw) {
		return nil, true
	}
	return raw, jsonx.KindOf(raw) == jsonx.KindString
}

func boolean(raw []byte) ([]byte, bool) {
	switch jsonx.KindOf(raw) {
	case jsonx.KindInvalid, jsonx.KindNull:
		return nil, true
	case jsonx.KindBool:
		return raw, true
	case jsonx.KindNumber:
		if f, err := strconv.ParseFloat(string(raw), 64); err == nil && (f == 0 || f == 1) {
			return strconv.AppendBool(nil, f == 1), true
		}
	case jsonx.KindString:
		switch s, _ := jsonx.Text(raw); strings.ToLower(s) {
		case "true", "t", "yes", "y", "on", "1":
			return []byte("true"), true
		case "false", "f", "no", "n", "off", "0":
			return []byte("false"), true
		}
	}
	return nil, false
}

func integer(raw []byte) ([]byte, bool) {
	if _, ok := jsonx.Int(raw); ok {
		return raw, true
	}
	f, ok := number(raw)
	if f == nil {
		return nil, ok
	}
	v := *f
	if !ok || v != math.Trunc(v) || math.Abs(v) >= 1<<63 {
		return nil, false
	}
	return strconv.AppendInt(nil, int64(v), 10), true
}

func float(raw []byte) ([]byte, bool) {
	if jsonx.KindOf(raw) == jsonx.KindNumber {
		return raw, true // its spelling survives
	}
	f, ok := number(raw)
	if f == nil || !ok {
		return nil, ok
	}
	if math.IsInf(*f, 0) || math.IsNaN(*f) {
		return nil, true
	}
	return strconv.AppendFloat(nil, *f, 'g', -1, 64), true
}

// number is nil for null, and not ok for what is no number in any spelling.
func number(raw []byte) (*float64, bool) {
	var s string
	switch jsonx.KindOf(raw) {
	case jsonx.KindInvalid, jsonx.KindNull:
		return nil, true
	case jsonx.KindBool:
		s = "0"
		if jsonx.Truthy(raw) {
			s = "1"
		}
	case jsonx.KindNumber:
		s = string(raw)
	case jsonx.KindString:
		s, _ = jsonx.Text(raw)
		s = strings.TrimSpace(s)
	default:
		return nil, false
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil && !math.IsInf(f, 0) {
		return nil, false
	}
	return &f, true
}

func modelRef(raw []byte, ok bool) (ModelRef, bool) {
	if jsonx.IsNull(raw) {
		return ModelRef{}, ok
	}
	r := ModelRef{Type: jsonx.Get(raw, "type"), Name: jsonx.Get(raw, "name")}
	if string(r.Type) != `"responses_api_models"` || jsonx.KindOf(r.Name) != jsonx.KindString {
		return ModelRef{}, false
	}
	return r, ok
}
