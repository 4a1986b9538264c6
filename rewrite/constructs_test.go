package rewrite_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"rolltap/rewrite"
	"rolltap/rewrite/canon"
	"rolltap/rewrite/dialect"
)

// The tables of docs/translation.md are claims. Each row has an example in testdata/constructs, and the example has to come out as the row says:
//
//   - the second cell: every piece of code in it is in what goes upstream, or in what the client gets, byte for byte. A dash says that nothing
//     comes of the construct at all.
//   - the third cell: exactly what is lost, `path` and reason, or that it is refused, `code` `param`. An empty one: nothing is lost.
//
// Paths are written without the numbers in them.

// example is how a row is tried: members of a request, and of what the upstream answers.
type example struct {
	Dialect canon.Dialect // of the client, where the table does not say it
	Policy  json.RawMessage
	Request map[string]json.RawMessage // over a request that says hi
	Message map[string]json.RawMessage // over an empty message of the assistant
	Choice  map[string]json.RawMessage // over one that has stopped
	Answer  map[string]json.RawMessage // over the whole answer
}

// row is one line of a table.
type row struct{ construct, becomes, beside string }

func constructRows(t *testing.T, section string) []row {
	t.Helper()
	text, err := os.ReadFile("../docs/translation.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(text), "\n## "+section+"\n")
	if !ok {
		t.Fatalf("there is no section %q", section)
	}
	rest, _, _ = strings.Cut(rest, "\n## ")
	var rows []row
	for line := range strings.Lines(rest) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) < 5 {
			continue
		}
		r := row{strings.TrimSpace(cells[1]), strings.TrimSpace(cells[2]), strings.TrimSpace(cells[3])}
		if len(cells) != 5 {
			t.Fatalf("%q has %d cells", r.construct, len(cells)-2)
		}
		rows = append(rows, r)
	}
	return rows[min(2, len(rows)):] // behind the head
}

// eachExample runs check for every row and its example; none of the two may be without the other.
func eachExample(t *testing.T, section, file string, check func(*testing.T, row, *example)) {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var examples map[string]*example
	if err := json.Unmarshal(text, &examples); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	rows := constructRows(t, section)
	if len(rows) < 10 {
		t.Errorf("%q has only %d rows", section, len(rows))
	}
	for _, r := range rows {
		e := examples[r.construct]
		if e == nil {
			t.Errorf("%q: the row %q has no example, or stands there twice", section, r.construct)
			continue
		}
		delete(examples, r.construct)
		t.Run(r.construct, func(t *testing.T) { check(t, r, e) })
	}
	for name := range examples {
		t.Errorf("%q: the example %q has no row", section, name)
	}
}

// with sets members in an object.
func with(object string, members map[string]json.RawMessage) []byte {
	body := []byte(object)
	for _, name := range slices.Sorted(maps.Keys(members)) {
		body = rewrite.SetMember(body, name, members[name])
	}
	return body
}

// saysHi is the request that examples change.
func saysHi(d canon.Dialect) string {
	if d == canon.Messages {
		return `{"model":"m","max_tokens":9999,"messages":[{"role":"user","content":"hi"}]}`
	}
	if d == canon.Gemini {
		return `{"contents":[{"role":"user","parts":[{"text":"hi"}]}]}`
	}
	return `{"model":"m","input":"hi"}`
}

// ask translates the request of an example for a Chat upstream.
func (e *example) ask(t *testing.T, d canon.Dialect) (*rewrite.Translation, []byte, *canon.Problem) {
	t.Helper()
	policy := rewrite.DefaultPolicy()
	if e.Policy != nil {
		var err error
		if policy, err = rewrite.PolicyFromJSON(e.Policy); err != nil {
			t.Fatal(err)
		}
		if err = policy.Validate(); err != nil {
			t.Fatal(err)
		}
	}
	tr := rewrite.NewTranslation(translator(t, d), translator(t, canon.Chat), &policy, rewrite.Call{ID: "1", Window: func(string) int64 { return 1 << 20 }, Target: dialect.Target{Model: targetOf(d).Model}})
	body, err := tr.Request(with(saysHi(d), e.Request))
	var p *canon.Problem
	if errors.As(err, &p) != (err != nil) {
		t.Fatalf("an error that is no refusal: %v", err)
	}
	return tr, body, p
}

func TestRequestsBecomeWhatTheTablesSay(t *testing.T) {
	check := func(d canon.Dialect) func(*testing.T, row, *example) {
		return func(t *testing.T, r row, e *example) {
			from := d
			if from == "" {
				from = e.Dialect
			}
			tr, body, p := e.ask(t, from)
			if p != nil {
				compareBeside(t, r, fmt.Sprintf("refused: `%s` `%s`", p.Code, anyIndex(p.Param)), nil)
				return
			}
			compareBeside(t, r, "", tr.Losses())
			comparePieces(t, r, body, func() []byte {
				_, plain, _ := (&example{}).ask(t, from)
				return plain
			})
			if e.Policy == nil { // a setting may be for an upstream that takes more
				for _, bad := range strictly(body, false) {
					t.Error(bad)
				}
			}
		}
	}
	eachExample(t, "Messages requests", "testdata/constructs/messages.json", check(canon.Messages))
	eachExample(t, "Responses requests", "testdata/constructs/responses.json", check(canon.Responses))
	eachExample(t, "Gemini requests", "testdata/constructs/gemini.json", check(canon.Gemini))
	eachExample(t, "Other settings", "testdata/constructs/settings.json", check(""))
}

func TestAnswersBecomeWhatTheTablesSay(t *testing.T) {
	check := func(d canon.Dialect) func(*testing.T, row, *example) {
		return func(t *testing.T, r row, e *example) {
			tr, _, p := e.ask(t, d)
			if p != nil {
				t.Fatal(p)
			}
			asked := len(tr.Losses())
			message := with(`{"role":"assistant","content":null}`, e.Message)
			choice := rewrite.SetMember([]byte(`{"index":0,"finish_reason":"stop"}`), "message", message)
			choice = append(append([]byte{'['}, with(string(choice), e.Choice)...), ']')
			whole := rewrite.SetMember([]byte(`{"id":"chatcmpl-9","object":"chat.completion","created":1700000000,"model":"served"}`), "choices", choice)
			client, err := tr.Answer(with(string(whole), e.Answer))
			if err != nil {
				if !errors.As(err, &p) {
					t.Fatal(err)
				}
				end := fmt.Sprintf("failed: %d", p.Status)
				if p.Code != "" {
					end += fmt.Sprintf(" `%s`", p.Code)
				}
				compareBeside(t, r, end, nil)
				return
			}
			compareBeside(t, r, "", tr.Losses()[asked:])
			comparePieces(t, r, client, nil)
		}
	}
	eachExample(t, "Answers to Messages clients", "testdata/constructs/to_messages.json", check(canon.Messages))
	eachExample(t, "Answers to Responses clients", "testdata/constructs/to_responses.json", check(canon.Responses))
	eachExample(t, "Answers to Gemini clients", "testdata/constructs/to_gemini.json", check(canon.Gemini))
}

// compareBeside compares the third cell with what was lost, or with the end of all.
func compareBeside(t *testing.T, r row, end string, losses []canon.Loss) {
	t.Helper()
	got := []string{}
	if end != "" {
		got = append(got, end)
	}
	for _, l := range losses {
		got = append(got, fmt.Sprintf("`%s` %s", anyIndex(l.Path), l.Reason))
	}
	want := []string{}
	if r.beside != "" {
		want = strings.Split(r.beside, ", ")
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(want, slices.Compact(got)) {
		t.Errorf("lost or refused: %s; the table says %s", strings.Join(got, ", "), r.beside)
	}
}

// comparePieces looks for the code of the second cell; plain is what comes of a request without the construct.
func comparePieces(t *testing.T, r row, body []byte, plain func() []byte) {
	t.Helper()
	pieces := regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(r.becomes, -1)
	switch {
	case r.becomes == "–" && plain != nil:
		if want := plain(); string(want) != string(body) {
			t.Errorf("something comes of it: %s", body)
		}
	case len(pieces) == 0:
		t.Errorf("the table does not say what it becomes: %s", body)
	}
	for _, p := range pieces {
		if !strings.Contains(string(body), p[1]) {
			t.Errorf("%s is not in %s", p[1], body)
		}
	}
}

// fieldOf is the field of a policy that a key is kept in.
func fieldOf(key string) string {
	if key == "reasoning_seal_key_file" {
		return "SealKeyFile"
	}
	var b strings.Builder
	for word := range strings.SplitSeq(key, "_") {
		b.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return b.String()
}

// policyFields are the fields of a policy by their names, those of the dialects' policy among them.
func policyFields(p *rewrite.Policy) map[string]any {
	all := map[string]any{}
	var walk func(v reflect.Value)
	walk = func(v reflect.Value) {
		for f, value := range v.Fields() {
			if f.Anonymous {
				walk(value)
			} else {
				all[f.Name] = value.Interface()
			}
		}
	}
	walk(reflect.ValueOf(*p))
	delete(all, "SealKey") // what the key file holds
	return all
}

// TestEveryKeyIsDocumented: docs/rewrite.md has a row for every key, with its values and its default.
func TestEveryKeyIsDocumented(t *testing.T) {
	text, err := os.ReadFile("../docs/rewrite.md")
	if err != nil {
		t.Fatal(err)
	}
	policy := rewrite.DefaultPolicy()
	fields := policyFields(&policy)
	code := regexp.MustCompile("`([^`]+)`")
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z_]+)`[ †]* \\| (.*?) \\| (.*?) \\| .+ \\|$").FindAllStringSubmatch(string(text), -1) {
		key, values, def := m[1], m[2], strings.Trim(m[3], "`")
		field, ok := fields[fieldOf(key)]
		if !ok {
			t.Errorf("%s is no key, or stands there twice", key)
			continue
		}
		delete(fields, fieldOf(key))
		if def == "none" {
			if field != "" {
				t.Errorf("%s: the default is %q", key, field)
			}
			continue
		}
		p, err := rewrite.PolicyFromJSON(oneKey(key, def))
		if err != nil {
			t.Errorf("%s: %v", key, err)
			continue
		}
		if got := policyFields(&p)[fieldOf(key)]; !reflect.DeepEqual(got, field) && string(fmt.Appendf(nil, "%s", got)) != "{}" {
			t.Errorf("%s: the default is %v, the table says %s", key, field, def)
		}
		// What is refused says which words there are.
		if _, word := field.(string); word {
			var words []string
			for _, w := range code.FindAllStringSubmatch(values, -1) {
				words = append(words, w[1])
			}
			wrong, _ := rewrite.PolicyFromJSON(oneKey(key, "no such word"))
			if err := wrong.Validate(); err == nil || !strings.HasSuffix(err.Error(), "is none of "+strings.Join(words, ", ")) {
				t.Errorf("%s: %v; the table says %s", key, err, values)
			}
		}
	}
	for name := range fields {
		t.Errorf("docs/rewrite.md has no row for %s", name)
	}
	_, yaml, _ := strings.Cut(string(text), "```yaml\nrewrite:\n")
	yaml, _, _ = strings.Cut(yaml, "```")
	shown := 0
	for line := range strings.Lines(yaml) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		p, err := rewrite.PolicyFromJSON(oneKey(key, value))
		if err = errors.Join(err, p.Validate()); err != nil {
			t.Errorf("the example: %v", err)
		}
		shown++
	}
	if shown < 3 {
		t.Errorf("the example has %d keys", shown)
	}
}

// oneKey is the configuration of one key; a value that is no JSON is a text.
func oneKey(key, value string) []byte {
	if !json.Valid([]byte(value)) {
		value = fmt.Sprintf("%q", value)
	}
	return rewrite.SetMember([]byte("{}"), key, []byte(value))
}
