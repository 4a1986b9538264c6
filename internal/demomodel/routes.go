package demomodel

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"rolltap/internal/jsonx"
)

// models serves GET /v1/models.
func (m *model) models(w http.ResponseWriter, _ *http.Request) {
	now := time.Now().Unix()
	name := string(jsonx.AppendString(nil, m.o.Model))
	sendJSON(w, http.StatusOK, fmt.Appendf(nil,
		`{"object":"list","data":[{"id":%s,"object":"model","created":%d,"owned_by":"vllm","root":%[1]s,"parent":null,"max_model_len":%[3]d,`+
			`"permission":[{"id":"modelperm-%016[4]x","object":"model_permission","created":%[2]d,"allow_create_engine":false,"allow_sampling":true,`+
			`"allow_logprobs":true,"allow_search_indices":false,"allow_view":true,"allow_fine_tuning":false,"organization":"*","group":null,"is_blocking":false}]}]}`,
		name, now, maxModelLen, mix(uint64(now), 1)))
}

// tokenize serves POST /tokenize, for a text or for a conversation. The ids of a
// conversation are the prompt_token_ids of a chat request with the same members.
func (m *model) tokenize(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	var q struct {
		request
		Prompt     *string `json:"prompt"`
		TokenStrs  bool    `json:"return_token_strs"`
		Generation *bool   `json:"add_generation_prompt"`
	}
	if p := decode(r, body, &q); p != nil {
		p.send(w)
		return
	}
	if p := unknownModel(q.Model, m.o.Model); p != nil {
		p.send(w)
		return
	}
	var ids []int
	switch {
	case q.Prompt != nil:
		ids = m.tok.append(nil, *q.Prompt)
	case q.Messages != nil:
		ids = m.prompt(&q.request)
		if q.Generation != nil && !*q.Generation && !q.ContinueFinal {
			ids = ids[:len(ids)-len(m.opening())]
		}
	default:
		missing(body, "body.prompt").send(w)
		return
	}
	out := fmt.Appendf(nil, `{"count":%d,"max_model_len":%d,"tokens":`, len(ids), maxModelLen)
	out = appendIDs(out, ids, true)
	out = append(out, `,"token_strs":`...)
	if !q.TokenStrs {
		sendJSON(w, http.StatusOK, append(out, "null}"...))
		return
	}
	out = append(out, '[')
	for i, id := range ids {
		if i > 0 {
			out = append(out, ',')
		}
		out = jsonx.AppendString(out, m.tok.printable(id))
	}
	sendJSON(w, http.StatusOK, append(out, "]}"...))
}

// opening is what a prompt ends with when the model is to answer.
func (m *model) opening() []int {
	t := &transcript{tok: m.tok}
	t.open("assistant")
	return t.ids
}

// detokenize serves POST /detokenize. Ids that do not exist have no text.
func (m *model) detokenize(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	var q struct {
		Model  string `json:"model"`
		Tokens []int  `json:"tokens"`
	}
	if p := decode(r, body, &q); p != nil {
		p.send(w)
		return
	}
	if p := unknownModel(q.Model, m.o.Model); p != nil {
		p.send(w)
		return
	}
	if q.Tokens == nil {
		missing(body, "body.tokens").send(w)
		return
	}
	out := jsonx.AppendString([]byte(`{"prompt":`), m.tok.decode(q.Tokens))
	sendJSON(w, http.StatusOK, append(out, '}'))
}

// metrics serves a few of vLLM's series, those that routers and dashboards read.
// They are written by hand: the Prometheus library belongs to another package.
func (m *model) metrics(w http.ResponseWriter, _ *http.Request) {
	label, _ := json.Marshal(m.o.Model)
	labels := `{engine="0",model_name=` + string(label) + `}`
	var b strings.Builder
	family := func(name, kind, help string) {
		fmt.Fprintf(&b, "# HELP vllm:%s %s\n# TYPE vllm:%[1]s %[3]s\n", name, help, kind)
	}
	one := func(name, kind, help string, value int64) {
		family(name, kind, help)
		fmt.Fprintf(&b, "vllm:%s%s %d.0\n", name, labels, value)
	}
	one("num_requests_running", "gauge", "Number of requests in model execution batches.", m.running.Load())
	one("num_requests_waiting", "gauge", "Number of requests waiting to be processed.", 0)
	one("kv_cache_usage_perc", "gauge", "KV-cache usage. 1 means 100 percent usage.", 0)
	one("prompt_tokens_total", "counter", "Number of prefill tokens processed.", m.prompts.Load())
	one("generation_tokens_total", "counter", "Number of generation tokens processed.", m.generated.Load())
	family("request_success_total", "counter", "Count of successfully processed requests.")
	for _, end := range []struct {
		word string
		n    int64
	}{{"stop", m.stopped.Load()}, {"length", m.cutShort.Load()}, {"abort", m.aborted.Load()}} {
		fmt.Fprintf(&b, "vllm:request_success_total{engine=\"0\",finished_reason=%q,model_name=%s} %d.0\n", end.word, label, end.n)
	}
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	_, _ = io.WriteString(w, b.String())
}
