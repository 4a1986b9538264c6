package rewrite

import (
	"strings"

	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
)

// forbid applies the sampling rules to a request as a Messages upstream is about to be sent it. Before is the same request without what
// settings have added: what is dropped of it is a loss of the client's, who speaks from. The bodies are not written to.
func (p *Policy) forbid(body, before []byte, from canon.Dialect, l *canon.Losses) ([]byte, error) {
	model, _ := jsonx.Text(jsonx.Get(body, "model"))
	for i := range p.Sampling {
		rule := &p.Sampling[i]
		if !containsFold(model, rule.Model) {
			continue
		}
		var found []string
		for _, name := range rule.Forbid {
			if !jsonx.IsNull(jsonx.Get(body, name)) {
				found = append(found, name)
			}
		}
		if len(found) > 0 && rule.Action == "error" {
			return nil, canon.Unsupported(calledBy(from, found[0]), "the model "+rule.Model+" does not take "+joinAnd(found))
		}
		for _, name := range found {
			body = dropMember(body, name)
			if !jsonx.IsNull(jsonx.Get(before, name)) {
				l.Add(calledBy(from, name), canon.ByPolicy)
			}
		}
	}
	return body, nil
}

// calledBy is how a client calls a member of Messages.
func calledBy(from canon.Dialect, name string) string {
	if name == "stop_sequences" {
		name = "stop" // names are told by Chat's
	}
	return from.Called(name)
}

func containsFold(s, part string) bool {
	return strings.Contains(strings.ToLower(s), strings.ToLower(part))
}
