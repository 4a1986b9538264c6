package main

// long: the top level has this one test file

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"go.uber.org/goleak"

	"rolltap/internal/demomodel"
)

func TestMain(m *testing.M) { testscript.Main(m, map[string]func(){"rolltap": main}) }

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("internal", "cli", "testdata", "script"),
		Setup: func(e *testscript.Env) error {
			return os.CopyFS(filepath.Join(e.WorkDir, "store"), os.DirFS(filepath.Join("internal", "cli", "testdata", "store")))
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			// exits CODE COMMAND …: the exit code is part of the outside.
			"exits": func(ts *testscript.TestScript, _ bool, args []string) {
				want, err := strconv.Atoi(args[0])
				ts.Check(err)
				code := 0
				var exit *exec.ExitError
				if err := ts.Exec(args[1], args[2:]...); errors.As(err, &exit) {
					code = exit.ExitCode()
				} else {
					ts.Check(err)
				}
				if code != want {
					ts.Fatalf("%v: exit code %d, want %d", args[1:], code, want)
				}
			},
		},
	})
}

// serving is a run of `rolltap serve` in this process.
type serving struct {
	t      *testing.T
	listen string
	config map[string]any // the log line of the configuration
	warned []string
	cancel context.CancelFunc
	exit   chan int
	log    *bytes.Buffer // written until exit has been received
}

// start runs serve until it listens.
func start(t *testing.T, environ []string, args ...string) *serving {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	r, w := io.Pipe()
	s := &serving{t: t, cancel: cancel, exit: make(chan int, 1), log: &bytes.Buffer{}}
	code := make(chan int, 1)
	go func() {
		code <- run(ctx, append([]string{"serve", "--listen=127.0.0.1:0", "--admin-listen="}, args...), environ, io.Discard, w)
		w.Close()
	}()
	ready := make(chan struct{})
	go func() {
		lines := bufio.NewScanner(r)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			s.log.Write(append(lines.Bytes(), '\n'))
			var v map[string]any
			if json.Unmarshal(lines.Bytes(), &v) != nil {
				continue
			}
			switch msg := fmt.Sprint(v["msg"]); {
			case msg == "configuration":
				s.config = v
			case v["level"] == "warn":
				s.warned = append(s.warned, msg)
			case msg == "serving":
				s.listen = fmt.Sprint(v["listen"])
				close(ready)
			}
		}
		s.exit <- <-code
	}()
	select {
	case <-ready:
	case c := <-s.exit:
		t.Fatalf("serve ended with %d:\n%s", c, s.log)
	}
	return s
}

// stop ends it as SIGTERM does and wants the exit code.
func (s *serving) stop(want int) {
	s.t.Helper()
	s.cancel()
	s.ended(want)
}

func (s *serving) ended(want int) {
	s.t.Helper()
	if got := <-s.exit; got != want {
		s.t.Errorf("exit code %d, want %d:\n%s", got, want, s.log)
	}
}

// spawned is a run of `rolltap serve` in a process of its own.
type spawned struct {
	cmd           *exec.Cmd
	log           io.ReadCloser // behind the line that says where it listens
	listen, admin string
}

// spawn runs serve with the settings until it listens. It is killed at the end of the test.
func spawn(t *testing.T, args ...string) *spawned {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s := &spawned{cmd: exec.Command(self)}
	s.cmd.Args = append([]string{"rolltap", "serve", "--listen=127.0.0.1:0", "--log-format=json"}, args...)
	if s.log, err = s.cmd.StderrPipe(); err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	kill := func() { _ = s.cmd.Process.Kill() }
	late := time.AfterFunc(time.Minute, kill) // nobody waits for it longer
	t.Cleanup(func() { late.Stop(); kill() })
	for lines := bufio.NewScanner(s.log); s.listen == ""; {
		var v struct {
			Msg, Listen string
			Admin       string `json:"admin_listen"`
		}
		if !lines.Scan() {
			t.Fatal("it does not serve")
		}
		if json.Unmarshal(lines.Bytes(), &v) == nil && v.Msg == "serving" {
			s.listen, s.admin = v.Listen, v.Admin
		}
	}
	return s
}

const hello = `{"model":"rolltap-demo","stream":%t,"messages":[{"role":"user","content":"What is the capital of France?"}]}`

func (s *serving) call(rollout string, stream bool) string {
	s.t.Helper()
	res, err := http.Post("http://"+s.listen+"/ng-rollout/"+rollout+"/v1/chat/completions", "application/json", strings.NewReader(fmt.Sprintf(hello, stream)))
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		s.t.Fatal(res.Status, err, string(b))
	}
	return string(b)
}

// command runs another command to its end.
func command(t *testing.T, args ...string) (code int, stdout string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(t.Context(), args, nil, &out, &errs)
	if code != 0 {
		t.Log(errs.String())
	}
	return code, out.String()
}

// The whole way: serve in front of a model, call it, stop it, read the store back.
func TestServe(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent(), goleak.IgnoreAnyFunction("os/signal.loop"))
	defer http.DefaultClient.CloseIdleConnections()
	store := filepath.Join(t.TempDir(), "a", "store")
	up := httptest.NewServer(demomodel.New(demomodel.Options{}))
	defer up.Close()
	s := start(t, nil, "--upstream="+up.URL+"/v1", "--store="+store, "--model-ref=policy")
	streamed, whole := s.call("r-1", true), s.call("r-1", false)
	if !strings.HasSuffix(streamed, "data: [DONE]\n\n") || !strings.Contains(whole, "Paris") {
		t.Errorf("answers:\n%s\n%s", streamed, whole)
	}
	s.stop(0)

	code, out := command(t, "show", "r-1", "--json", "--store", store)
	var v struct {
		Calls []struct {
			ModelRef struct{ Name string } `json:"model_ref"`
			Response struct {
				Choices []struct{ Message struct{ Content string } }
			}
			Rolltap struct{ Outcome string }
		}
	}
	if err := json.Unmarshal([]byte(out), &v); code != 0 || err != nil || len(v.Calls) != 2 {
		t.Fatalf("exit code %d, %v:\n%s", code, err, out)
	}
	for i, c := range v.Calls {
		if c.Rolltap.Outcome != "ok" || c.ModelRef.Name != "policy" || c.Response.Choices[0].Message.Content != "The capital of France is Paris." {
			t.Errorf("call %d: %+v", i, c)
		}
	}
	if code, out := command(t, "verify", "--strict", "--store", store); code != 0 {
		t.Errorf("verify ends with %d:\n%s", code, out)
	}
}

// The log says at start what holds and where it came from; what nobody reads is warned about.
func TestEffectiveConfiguration(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "rolltap.yaml")
	if err := os.WriteFile(file, []byte("drain-timeout: 7s\nmodel-ref: of the file\nupstream-dialects: [chat, messages]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := start(t, []string{"ROLLTAP_CONFIG=" + file, "ROLLTAP_MODEL_REF=of the environment", "ROLLTAP_CAPTURE_RAW=always", "ROLLTAP_STROE=x"},
		"--capture-raw=never", "--store="+dir)
	s.stop(0)
	settings, _ := s.config["settings"].(map[string]any)
	origins, _ := s.config["origins"].(map[string]any)
	for _, c := range []struct{ name, value, origin string }{
		{"drain-timeout", "7s", file + ":1"},
		{"model-ref", "of the environment", "env ROLLTAP_MODEL_REF"},
		{"upstream-dialects", "chat,messages", file + ":3"},
		{"capture-raw", "never", "flag"},
		{"capture-max-bytes", "64MiB", "<nil>"},
		{"durability", "journal", "<nil>"},
	} {
		if v, o := fmt.Sprint(settings[c.name]), fmt.Sprint(origins[c.name]); v != c.value || o != c.origin {
			t.Errorf("%s: got %q from %s, want %q from %s", c.name, v, o, c.value, c.origin)
		}
	}
	if len(s.warned) == 0 || !strings.Contains(s.warned[0], "ROLLTAP_STROE") {
		t.Errorf("warned: %q", s.warned)
	}
}

// What a container may hold is not all Go's: what is, the log says.
func TestMemoryLimit(t *testing.T) {
	before := debug.SetMemoryLimit(256 << 20)
	defer debug.SetMemoryLimit(before)
	s := start(t, nil, "--store="+t.TempDir())
	s.stop(0)
	if got := s.config["memory_limit"]; got != 224.*(1<<20) {
		t.Errorf("the log says %v", got)
	}
	if got := debug.SetMemoryLimit(-1); got != 256<<20 {
		t.Errorf("behind the run the limit is %d", got)
	}
}

// SIGTERM is what ends a sidecar: what is in flight has its end, and the exit code is 0.
func TestSIGTERM(t *testing.T) {
	asked, answer := make(chan struct{}), make(chan struct{})
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			return
		}
		close(asked)
		<-answer
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"choices":[{"index":0,"message":{"role":"assistant","content":"late"},"finish_reason":"stop"}]}`)
	}))
	defer up.Close()
	s := start(t, nil, "--upstream="+up.URL, "--store="+t.TempDir())
	got := make(chan string, 1)
	go func() { got <- s.call("r", false) }()
	<-asked
	if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	close(answer)
	if body := <-got; !strings.Contains(body, "late") {
		t.Errorf("got %s", body)
	}
	s.ended(0)
}

// Answers that have to be cut at the end of the drain timeout are told by the exit code.
func TestCutAnswersAreAFailure(t *testing.T) {
	asked := make(chan struct{})
	up := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			io.Copy(io.Discard, r.Body)
			close(asked)
			<-r.Context().Done()
		}
	}))
	defer up.Close()
	s := start(t, nil, "--upstream="+up.URL, "--store="+t.TempDir(), "--drain-timeout=1ms")
	done := make(chan struct{})
	go func() {
		defer close(done)
		res, err := http.Post("http://"+s.listen+"/ng-rollout/r/v1/chat/completions", "application/json", strings.NewReader(fmt.Sprintf(hello, true)))
		if err == nil {
			res.Body.Close()
		}
	}()
	<-asked
	s.stop(1)
	<-done
}

// lines is a log that can be looked at while it is written.
type lines struct {
	mu  sync.Mutex // guards buf
	buf bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// Lines about ordinary calls are written together, a moment late; a warning takes them along, and the end leaves none behind.
func TestLogLinesAreGathered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out lines
		p := &program{stderr: &out}
		log, writer := p.gathered("json", "info")
		written := func(want int) {
			t.Helper()
			synctest.Wait()
			if got := strings.Count(out.String(), "\n"); got != want {
				t.Fatalf("%d lines are written, want %d: %s", got, want, out.String())
			}
		}
		log.Info("a call")
		log.Debug("nobody asked for it")
		written(0)
		time.Sleep(101 * time.Millisecond)
		written(1)
		log.Info("a call")
		log.Warn("an upstream that cuts")
		written(3)
		log.Info("a call")
		writer.Close()
		written(4)
		if lines := strings.Split(out.String(), "\n"); !strings.Contains(lines[1], "a call") || !strings.Contains(lines[2], `"level":"warn"`) {
			t.Errorf("the order is not that of the calls: %s", out.String())
		}
	})
}

// Whoever starts a sidecar may not read its log, or stop to: the calls go on, the lines are counted, and SIGTERM ends it as ever, or SIGHUP when a
// terminal has gone with its reader.
func TestNobodyReadsTheLog(t *testing.T) {
	model := httptest.NewServer(demomodel.New(demomodel.Options{}))
	defer model.Close()
	for _, gone := range []bool{false, true} {
		t.Run(fmt.Sprintf("gone=%t", gone), func(t *testing.T) {
			s := spawn(t, "--admin-listen=127.0.0.1:0", "--upstream="+model.URL, "--capture=off", "--log-level=debug")
			if gone {
				s.log.Close()
			}
			client := http.Client{Timeout: time.Minute}
			defer client.CloseIdleConnections()
			get := func(path string) string {
				res, err := client.Get("http://" + path)
				if err != nil {
					t.Fatal(err)
				}
				defer res.Body.Close()
				body, err := io.ReadAll(res.Body)
				if err != nil {
					t.Fatal(err)
				}
				return string(body)
			}
			// A line for each; the pipe, and what may wait for it, take fewer.
			long := strings.Repeat("x", 4<<10)
			dropped := func() bool {
				return !strings.Contains(get(s.admin+"/metrics"), "\nrolltap_log_dropped_lines_total 0\n")
			}
			for n := 0; !dropped(); n++ {
				if n == 50 {
					t.Fatal("no line is dropped")
				}
				for range 20 {
					get(s.listen + "/v1/" + long)
				}
			}
			end := syscall.SIGTERM
			if gone && !signal.Ignored(syscall.SIGHUP) { // which is handed down: nohup go test
				end = syscall.SIGHUP
			}
			if err := s.cmd.Process.Signal(end); err != nil {
				t.Fatal(err)
			}
			if err := s.cmd.Wait(); err != nil {
				t.Errorf("it ends with %v", err)
			}
		})
	}
}

func TestAddressTaken(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	var errs bytes.Buffer
	code := run(t.Context(), []string{"serve", "--listen", ln.Addr().String(), "--admin-listen=", "--store", t.TempDir()}, nil, io.Discard, &errs)
	if code != 1 || !strings.Contains(errs.String(), "address already in use") {
		t.Errorf("exit code %d:\n%s", code, errs.String())
	}
}

// The demo goes on until it is interrupted.
func TestDemoServesUntilInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	r, w := io.Pipe()
	code := make(chan int, 1)
	go func() {
		code <- run(ctx, []string{"demo", "--store", t.TempDir()}, nil, w, io.Discard)
		w.Close()
	}()
	var base string
	for lines := bufio.NewScanner(r); lines.Scan(); {
		if rest, ok := strings.CutPrefix(lines.Text(), "Still serving on "); ok {
			base, _, _ = strings.Cut(rest, " ")
		}
		if strings.HasPrefix(lines.Text(), "Codex") {
			res, err := http.Post(base+"/ng-rollout/mine/v1/messages", "application/json", strings.NewReader(`{"model":"rolltap-demo","messages":[{"role":"user","content":"hi"}],"max_tokens":9}`))
			if err != nil {
				t.Fatal(err)
			}
			res.Body.Close()
			if res.StatusCode != http.StatusOK {
				t.Errorf("Claude Code's dialect is answered with %s", res.Status)
			}
			cancel()
		}
	}
	if got := <-code; got != 0 || base == "" {
		t.Errorf("exit code %d, base %q", got, base)
	}
}

// A sidecar that is killed between the beginning of a call and its tokens leaves a rollout that is masked, also when the harness tries again
// and succeeds; what was captured before is still what it was.
func TestKilledInsideACall(t *testing.T) {
	model := demomodel.New(demomodel.Options{})
	asked, over := make(chan struct{}), make(chan struct{})
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Hang") != "" {
			w.(http.Flusher).Flush()
			close(asked)
			<-over
			return
		}
		model.ServeHTTP(w, r)
	}))
	defer up.Close()
	defer close(over)
	defer http.DefaultClient.CloseIdleConnections()
	store := t.TempDir()
	serve := func() (addr string, kill func()) {
		t.Helper()
		s := spawn(t, "--admin-listen=", "--upstream="+up.URL, "--store="+store, "--token-capture=auto")
		drained := make(chan struct{})
		go func() { defer close(drained); io.Copy(io.Discard, s.log) }()
		return s.listen, func() { s.cmd.Process.Kill(); <-drained; s.cmd.Wait() }
	}
	call := func(addr, hang string) error {
		req, err := http.NewRequest("POST", "http://"+addr+"/ng-rollout/r/training-token-capture/v1/chat/completions", strings.NewReader(fmt.Sprintf(hello, true)))
		if err != nil {
			return err
		}
		if hang != "" {
			req.Header.Set("X-Hang", hang)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		defer res.Body.Close()
		_, err = io.Copy(io.Discard, res.Body)
		return err
	}
	addr, kill := serve()
	if err := call(addr, ""); err != nil {
		t.Fatal(err)
	}
	hung := make(chan error, 1)
	go func() { hung <- call(addr, "yes") }()
	<-asked
	kill()
	if err := <-hung; err == nil {
		t.Error("the call that was killed had its end")
	}
	addr, kill = serve()
	if err := call(addr, ""); err != nil {
		t.Fatal(err)
	}
	kill()
	code, out := command(t, "show", "r", "--tokens", "--json", "--store", store)
	var v struct {
		Incomplete bool
		Calls      []struct {
			Generated []int `json:"generation_token_ids"`
		}
	}
	if err := json.Unmarshal([]byte(out), &v); code != 0 || err != nil {
		t.Fatalf("exit code %d, %v:\n%s", code, err, out)
	}
	if !v.Incomplete || len(v.Calls) != 2 || len(v.Calls[0].Generated) == 0 || !slices.Equal(v.Calls[0].Generated, v.Calls[1].Generated) {
		t.Errorf("want two equal calls of a masked rollout: %s", out)
	}
	if code, out := command(t, "verify", "--store", store); code != 0 || !strings.Contains(out, "masked") {
		t.Errorf("verify ends with %d: %s", code, out)
	}
}
