//go:build bigstore

package cli

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"rolltap/internal/jsonx"
)

// TestBigStore makes a store to measure readers with, in the folder BIGSTORE, which must not exist:
//
//	BIGSTORE=/tmp/big BIGSTORE_MIB=2048 go test -tags bigstore -run BigStore -timeout 20m ./internal/cli
//
// Its rollouts are like those of coding agents, each request with all that was said before, and one line is as long as a line
// may be.
func TestBigStore(t *testing.T) {
	dir := os.Getenv("BIGSTORE")
	if err := os.Mkdir(dir, 0o750); err != nil {
		t.Fatal(err)
	}
	mib, err := strconv.ParseInt(os.Getenv("BIGSTORE_MIB"), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	left, long := mib<<20, int64(256<<20-4096)
	for n := 0; left > 0; n++ {
		f, err := os.Create(filepath.Join(dir, fmt.Sprintf("task%d-r0.capture.jsonl", n)))
		if err != nil {
			t.Fatal(err)
		}
		w := bufio.NewWriterSize(f, 1<<20)
		talk := 0
		for i := 0; i < 60 && left > 0; i++ {
			line := agentCall(n, i, talk)
			talk += 6 << 10
			left -= int64(len(line))
			w.Write(line)
		}
		if n == 1 && left > long {
			line := longCall(int(long))
			left -= int64(len(line))
			w.Write(line)
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

const someCode = "func (s *Store) Open(dir string) error {\n\tif dir == \"\" {\n\t\treturn errors.New(\"no dir\")\n\t}\n\t// größer, 世界\n\treturn nil\n}\n"

// agentCall is call i of rollout n, with so many bytes of history.
func agentCall(n, i, history int) []byte {
	var talk []byte
	for k := 0; len(talk) < history; k++ {
		talk = fmt.Appendf(talk, `,{"role":"assistant","content":[{"type":"text","text":"Let me look at file %d."},{"type":"tool_use","id":"toolu_%d_%d","name":"Read","input":{"path":"pkg/file%d.go","limit":200}}]}`, k, n, k, k)
		talk = append(talk, fmt.Sprintf(`,{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_%d_%d","content":`, n, k)...)
		talk = append(jsonx.AppendString(talk, strings.Repeat(someCode, 40)), `}]}`...)
	}
	var tools []byte
	for k := range 20 {
		tools = fmt.Appendf(tools, `,{"name":"Tool%d","description":"%s","input_schema":{"type":"object","properties":{"path":{"type":"string","description":"where"},"limit":{"type":"integer"}},"required":["path"]}}`, k, strings.Repeat("Reads a file and tells what stands in it. ", 20))
	}
	at := 1795000000 + n*1000 + i*10
	return fmt.Appendf(nil, `{"model_call_id":"%08x%024x","dialect":"messages","model_ref":null,"started_at":%d.25,"completed_at":%d.5,"latency_ms":2250.00,"latency_ttft_ms":%d.50,"status_code":200,"error_category":null,`+
		`"request":{"model":"m","max_tokens":32000,"stream":true,"system":[{"type":"text","text":"You are an agent."}],"tools":[%s],"messages":[{"role":"user","content":"Fix the bug %d."}%s]},`+
		`"response":{"id":"msg_%d_%d","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"Let me look."},{"type":"tool_use","id":"toolu_%d_%d","name":"Read","input":{"path":"a.go"}}],"stop_reason":"tool_use","usage":{"input_tokens":%d,"output_tokens":40,"cache_read_input_tokens":%d}},`+
		`"upstream_attempted":true,"response_source":"upstream","upstream_status_code":200,"local_response_reason":null,"rolltap":{"v":1,"rollout_id":"task%d-r0","writer":"abcdef","seq":%d,"method":"POST","path":"/v1/messages","query":null,"stream":true,"outcome":"ok","finish_reason":"tool_calls","losses":[],"upstream":null,`+
		`"usage":{"prompt_tokens":%d,"completion_tokens":40,"cached_tokens":%d,"reasoning_tokens":null},"client":{"session":"s%d"},"request_bytes":%d,"response_bytes":900,"truncated":[]}}`+"\n",
		n, i, at, at+2, 100+i%50, tools[1:], n, talk, n, i, n, i, 50, history/4, n, i+1, history/4+50, history/4, n, history)
}

// longCall is one call whose request is an image of so many bytes.
func longCall(bytes int) []byte {
	head := `{"model_call_id":"ffffffffffffffffffffffffffffffff","dialect":"chat","model_ref":null,"started_at":1795000000.0,"completed_at":1795000009.0,"latency_ms":9000.0,"latency_ttft_ms":100.0,"status_code":200,"error_category":null,"request":{"model":"m","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,`
	tail := `"}}]}]},"response":{"id":"c","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"An image."},"finish_reason":"stop"}],"usage":{"prompt_tokens":7,"completion_tokens":3}},"upstream_attempted":true,"response_source":"upstream","upstream_status_code":200,"local_response_reason":null,"rolltap":{"v":1,"rollout_id":"task1-r0","writer":"zzzzzz","seq":1,"stream":true,"outcome":"ok","finish_reason":"stop","losses":[],"upstream":null,"usage":null,"client":{},"request_bytes":1,"response_bytes":1,"truncated":[]}}` + "\n"
	line := append(make([]byte, 0, bytes+64), head...)
	for len(line) < bytes-len(tail) {
		line = append(line, "iVBORw0KGgoAAAANSUhEUgAAAAgAAAAIAQAAAADsdIMmAAAACXBIWXMAAA7EAAAO"...)
	}
	return append(line, tail...)
}
