package deploy

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Traffic is a client of a sidecar.
type Traffic struct {
	base   string
	client http.Client
}

// NewTraffic makes one with its own connections.
func NewTraffic(base string) *Traffic {
	return &Traffic{base, http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}, Timeout: 2 * time.Minute}}
}

// Call is one request to a model.
type Call struct {
	Rollout string // with /training-token-capture behind it if wanted; empty: without a prefix
	Dialect string // chat, messages, responses
	Text    string
	Stream  bool
	Extra   map[string]any // members beside
	Leave   time.Duration  // when the client leaves, 0: it stays
	Status  int            // wanted, 0: the call is to be cut or left
}

// Do sends the call and reads the answer to its end.
func (t *Traffic) Do(ctx context.Context, c Call) error {
	body := map[string]any{"model": "rolltap-demo", "stream": c.Stream}
	path := "/v1/chat/completions"
	messages := []map[string]string{{"role": "user", "content": c.Text}}
	switch c.Dialect {
	case "messages":
		path, body["messages"], body["max_tokens"] = "/v1/messages", messages, 4096
	case "responses":
		path, body["input"] = "/v1/responses", c.Text
	default:
		body["messages"] = messages
		if c.Stream {
			body["stream_options"] = map[string]bool{"include_usage": true}
		}
	}
	for k, v := range c.Extra {
		body[k] = v
	}
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	if c.Rollout != "" {
		path = "/ng-rollout/" + c.Rollout + path
	}
	if c.Leave > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.Leave)
		defer cancel()
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, t.base+path, bytes.NewReader(text))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := t.client.Do(req)
	if err == nil {
		defer res.Body.Close()
		_, err = io.Copy(io.Discard, res.Body)
	}
	switch {
	case c.Status == 0 && err == nil:
		return fmt.Errorf("%s %q: the answer was whole, want it cut", c.Dialect, c.Text)
	case c.Status == 0:
		return nil
	case err != nil:
		return fmt.Errorf("%s %.60q: %w", c.Dialect, c.Text, err)
	case res.StatusCode != c.Status:
		return fmt.Errorf("%s %.60q: status %d, want %d", c.Dialect, c.Text, res.StatusCode, c.Status)
	}
	return nil
}

// Sound are calls that have nothing wrong with them, below a rollout.
func Sound(rollout string) []Call {
	return []Call{
		{Rollout: rollout, Dialect: "chat", Text: "30 words", Stream: true, Status: 200},
		{Rollout: rollout, Dialect: "chat", Text: "What is the capital of France?", Status: 200},
		{Rollout: rollout, Dialect: "messages", Text: "Why is the sky blue?", Stream: true, Status: 200},
		{Rollout: rollout, Dialect: "responses", Text: "count to 20", Stream: true, Status: 200},
		{Rollout: rollout + "/training-token-capture", Dialect: "chat", Text: "20 words", Stream: true, Status: 200},
		{Rollout: rollout, Dialect: "chat", Text: "30 words", Stream: true, Extra: map[string]any{"max_tokens": 5}, Status: 200},
	}
}

// TroubledRecords is how many of the calls of Troubled are recorded.
const TroubledRecords = 7

// Troubled are calls with everything that moves a series of failures, losses or keep-alives. The sidecar needs a --keepalive of
// less than a second. They leave TroubledRecords records under the rollout.
func Troubled(rollout string) []Call {
	return []Call{
		{Rollout: rollout, Dialect: "messages", Text: "hello", Extra: map[string]any{"metadata": map[string]string{"user_id": "u"}}, Status: 200},
		{Rollout: rollout, Dialect: "messages", Text: "10 words [demo-fault: stall=1200ms@3]", Stream: true, Status: 200},
		{Rollout: rollout, Dialect: "responses", Text: "10 words [demo-fault: stall=1200ms@3]", Stream: true, Status: 200},
		{Rollout: rollout, Dialect: "chat", Text: "hello [demo-fault: status=500]", Status: 500},
		{Rollout: rollout, Dialect: "chat", Text: "20 words [demo-fault: cut=4]", Stream: true},
		{Rollout: rollout, Dialect: "chat", Text: "200 words [demo-fault: slow=50ms]", Stream: true, Leave: 400 * time.Millisecond},
		{Rollout: rollout, Dialect: "messages", Text: "hello", Extra: map[string]any{"max_tokens": "many"}, Status: 400},
		{Dialect: "chat", Text: "hello", Status: 200},
		{Rollout: "-bad", Dialect: "chat", Text: "hello", Status: 400},
	}
}

// All sends calls one after the other.
func (t *Traffic) All(ctx context.Context, calls []Call) error {
	for _, c := range calls {
		if err := t.Do(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

// Mix goes on sending both kinds until ctx is done, each worker under its own rollouts, and tells how many calls of each.
func (t *Traffic) Mix(ctx context.Context, workers int) (rounds int, err error) {
	var mu sync.Mutex // guards rounds and err
	var group sync.WaitGroup
	for w := range workers {
		group.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				rollout := fmt.Sprintf("mix-%d-%d", w, n)
				// A round that was begun is finished.
				e := t.All(context.WithoutCancel(ctx), append(Sound(rollout), Troubled(rollout)...))
				mu.Lock()
				rounds++
				if err == nil {
					err = e
				}
				mu.Unlock()
				if e != nil {
					return
				}
			}
		})
	}
	group.Wait()
	return rounds, err
}

// Big sends n calls with a body of so many bytes over so many connections.
func (t *Traffic) Big(ctx context.Context, rollout string, n, connections, size int) error {
	padding := strings.Repeat("0123456789abcdef", size/16) // a member that the model does not count as prompt
	var mu sync.Mutex                                      // guards first
	var first error
	var group sync.WaitGroup
	next := make(chan int)
	for range connections {
		group.Go(func() {
			for i := range next {
				err := t.Do(ctx, Call{Rollout: fmt.Sprintf("%s-%d", rollout, i%connections), Dialect: "chat", Text: "hello", Stream: i%2 == 0, Extra: map[string]any{"user": padding}, Status: 200})
				if err != nil {
					mu.Lock()
					if first == nil {
						first = err
					}
					mu.Unlock()
				}
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	group.Wait()
	return first
}
