package responses

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rolltap/rewrite/canon"
	"rolltap/rewrite/dialect"
)

// callOptions are options of a request; losses may be nil.
func callOptions(losses *canon.Losses) dialect.Options {
	p := dialect.DefaultPolicy()
	return dialect.Options{Policy: &p, Losses: losses, ID: "7", Created: 1700000000}
}

func readCall(t testing.TB, body string) (*canon.Request, []canon.Loss) {
	t.Helper()
	var losses canon.Losses
	r, err := responses{}.ReadCall([]byte(body), callOptions(&losses))
	if err != nil {
		t.Fatalf("ReadCall: %v", err)
	}
	return r, losses.List()
}

// recorded are the requests of real clients by name.
func recorded(t testing.TB) map[string][]byte {
	t.Helper()
	files, err := filepath.Glob("testdata/requests/*.json")
	if err != nil || len(files) < 15 {
		t.Fatalf("%d recorded requests, %v", len(files), err)
	}
	all := map[string][]byte{}
	for _, f := range files {
		body, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		all[strings.TrimSuffix(filepath.Base(f), ".json")] = body
	}
	return all
}

// told is what a request's messages say, a line each: "user! [text hi]", where ! is a plain string.
func told(messages []canon.Message) string {
	var b strings.Builder
	for i := range messages {
		m := &messages[i]
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString([]string{"?", "system", "developer", "user", "assistant", "tool"}[m.Role])
		if m.Plain {
			b.WriteByte('!')
		}
		b.WriteString(toldParts(m.Parts) + toldExtra(m.Extra))
	}
	return b.String()
}

func toldExtra(extra []canon.Member) string {
	s := ""
	for _, e := range extra {
		s += fmt.Sprintf(" +%s=%s", e.Name, e.Value)
	}
	return s
}

func toldParts(parts []canon.Part) string {
	s := ""
	for i := range parts {
		p := &parts[i]
		s += " [" + toldPart(p) + toldExtra(p.Extra) + "]"
	}
	return s
}

func toldPart(p *canon.Part) string {
	custom := func(c bool) string {
		if c {
			return "custom "
		}
		return ""
	}
	m := &p.Media
	media := ""
	for _, f := range []struct {
		name string
		text canon.Text
	}{{"url", m.URL}, {"data", m.Data}, {"file_id", m.FileID}, {"format", m.Format}, {"detail", m.Detail}, {"title", m.Title}} {
		if f.text != nil {
			media += fmt.Sprintf(" %s=%s", f.name, f.text)
		}
	}
	switch p.Type {
	case canon.TextPart:
		s := "text " + string(p.Text)
		for _, c := range p.Cites {
			s += " cite " + string(c)
		}
		return s
	case canon.RefusalPart:
		return "refusal " + string(p.Text)
	case canon.ReasoningPart:
		return fmt.Sprintf("reasoning %q summary %q seal %q by %q", p.Text, p.Summary, p.Signature, p.SignedBy)
	case canon.CallPart:
		return fmt.Sprintf("%scall %s %s/%s %s", custom(p.Call.Custom), p.Call.ID, p.Call.Namespace, p.Call.Name, p.Call.Arguments)
	case canon.ResultPart:
		plain := ""
		if p.Result.Plain {
			plain = "!"
		}
		return fmt.Sprintf("%sresult%s %s%s", custom(p.Result.Custom), plain, p.Result.CallID, toldParts(p.Result.Parts))
	case canon.ImagePart:
		return "image" + media
	case canon.AudioPart:
		return "audio" + media
	case canon.VideoPart:
		return "video" + media
	case canon.FilePart:
		return "file" + media
	case canon.HostedPart:
		return "hosted " + string(p.Raw)
	case canon.ReferencePart:
		return "reference " + string(p.Text)
	case canon.UnknownPart:
		return "unknown " + string(p.Raw)
	}
	return "?"
}

// toldLosses is a loss a line.
func toldLosses(losses []canon.Loss) string {
	var lines []string
	for _, l := range losses {
		lines = append(lines, l.Path+" "+string(l.Reason))
	}
	return strings.Join(lines, "\n")
}

func decoded(t testing.TB, body []byte) map[string]any {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal(body, &v); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	return v
}
