package proxy

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"rolltap/capture"
	"rolltap/rewrite"
	"rolltap/rewrite/canon"
)

// Config is every setting of `rolltap serve`. The tags are the one place where a setting's flag, its environment
// variable (ROLLTAP_ and the flag in capitals), its YAML key, its default and its help are written; the command line
// package that reads them is main's business. A Config is read once, by Open.
type Config struct {
	// Listen is the proxy address, host:port; port 0 takes a free one.
	Listen string `default:":8080" help:"Proxy address."`
	// AdminListen is the address of metrics, probes and drain. Empty: none.
	AdminListen string `default:":9464" help:"Address of metrics, probes and drain; empty turns it off."`

	// Upstream is the root of the model server. A path in front of /v1 is kept; a last /v1 is not doubled.
	Upstream string `default:"http://127.0.0.1:8000" help:"Root of the model server, http or https; may carry a path, a last /v1 is not doubled."`
	// UpstreamDialects is what the upstream speaks natively, best first.
	UpstreamDialects []string `default:"chat" help:"What the upstream speaks natively, best first: chat, messages, responses."`
	// Gemini serves clients that speak Gemini's generateContent, by translation.
	Gemini bool `help:"Serve clients that speak Gemini's generateContent, translated and recorded; without it their paths pass through as any other."`
	// UpstreamAPIKeyFile holds the credential of upstream requests; client credentials then never leave rolltap.
	UpstreamAPIKeyFile string `name:"upstream-api-key-file" help:"File with the credential for the upstream; client credentials then never leave rolltap."`
	// UpstreamIdleTimeout is the longest silence of the upstream inside one exchange, the wait for its head included.
	UpstreamIdleTimeout time.Duration `default:"10m" help:"Longest silence of the upstream inside one exchange."`
	// UpstreamConnIdle is the longest that an unused upstream connection is kept. It has to be less than the upstream
	// keeps it, since a call on a connection that is just being closed fails.
	UpstreamConnIdle time.Duration `default:"3s" help:"Longest an unused upstream connection is kept; less than the upstream keeps it."`
	// UpstreamConcurrency bounds the exchanges at the upstream; more wait in order. 0: no bound.
	UpstreamConcurrency int64 `default:"0" help:"At most this many exchanges at the upstream at once; more wait in order. 0: no bound."`
	// ClientWriteTimeout is the longest that a client may stop reading before its exchange is given up.
	ClientWriteTimeout time.Duration `default:"1m" help:"Longest a client may stop reading before its exchange is given up."`

	// Model is the model that the upstream is asked for, whatever clients ask for; they see the name that they asked for.
	Model string `help:"Model that the upstream is asked for, whatever clients ask for."`
	// ModelMap renames single models on the way up, before Model.
	ModelMap ModelMap `placeholder:"FROM=TO,…" help:"Model FROM of a client is TO at the upstream; clients see the name they asked for."`
	// Rewrite is the rewrite: section of the file.
	Rewrite rewrite.Policy `kong:"-"`
	// Keepalive is the silence inside a translated stream after which its client is kept alive. 0: never.
	Keepalive time.Duration `default:"10s" help:"Silence inside a translated stream before a keep-alive is sent; 0 turns it off."`
	// KeepaliveOpen is the silence in front of the first event after which a translated stream is opened early. 0: never.
	KeepaliveOpen time.Duration `default:"45s" help:"Silence before the first upstream event after which a translated stream is opened early; 0: never."`

	// ModelRef is the name in the record's model_ref. Empty: null.
	ModelRef string `help:"Name for the record's model_ref; empty: null."`
	// Store is the capture folder, created with its parents.
	Store string `default:"./rollouts" help:"Capture folder, created with its parents; must be writable at start."`
	// Capture is best-effort, required or off.
	Capture string `default:"best-effort" help:"best-effort; required (an exchange that cannot be made durable is aborted); off."`
	// CaptureDeadline is the longest that the end of an answer waits for durability.
	CaptureDeadline time.Duration `default:"5s" help:"Longest the end of an answer waits for durability."`
	// Durability says what a record rests on when the end of its answer is released: journal, file or async.
	Durability string `default:"journal" help:"What a record rests on: journal (its file or, under load, one journal for all rollouts is synced), file (always its file), async (its file is synced within a second after)."`
	// TokenCapture says whose token ids and log probabilities are kept: off, auto (paths with /training-token-capture) or always.
	TokenCapture string `default:"off" help:"Keep exact token ids and log probabilities: off, auto (paths with /training-token-capture), always."`
	// LogprobsMode is what the engine's log probabilities are, raw or processed: it does not tell. Empty: unknown.
	LogprobsMode string `help:"What the engine's log probabilities are, raw or processed (its --logprobs-mode); empty: unknown, and the records say so."`
	// SideRequests are further requests whose answers no later prompt can hold, each "METHOD /path".
	SideRequests []string `help:"Further requests (METHOD /path) whose answers no later prompt can hold: under the training prefix they do not mark their rollout."`
	// CaptureRaw says when raw bodies are kept beside parsed ones: auto, always, never.
	CaptureRaw string `default:"auto" help:"Keep raw bodies: auto (streams and what is no JSON object), always, never."`
	// CaptureMaxBytes is the longest copy of one body in a record.
	CaptureMaxBytes Size `default:"64MiB" help:"Longest copy of one body in a record; the rest passes on and the record says truncated."`
	// MaxRequestBytes is the largest request that is recorded whole, counted after decoding. Any size is forwarded.
	MaxRequestBytes Size `default:"64MiB" help:"Largest request, counted after decoding. A larger one is forwarded and its record is cut; where it has to be read it is refused with 413."`
	// StoreMinFree is the free space of the store's file system below which records are not counted on. 0: not looked at.
	StoreMinFree Size `default:"0" help:"Free space of the store's file system below which best-effort marks rollouts and required refuses calls with 507; 0: not looked at."`
	// StoreMode is the mode of the store's files; folders let in whoever may read.
	StoreMode FileMode `default:"0640" help:"Mode of the store's new files; new folders let in whoever may read."`
	// Keep is how long, and how much of, the store is kept.
	Keep Keep `default:"off" help:"Remove rollouts not written to for this long, or the oldest beyond this many bytes, or both: 168h,50GiB. Only ones that are sealed, have no calls in flight and were not written to for ten minutes."`

	// DrainTimeout is what exchanges in flight get after SIGTERM.
	DrainTimeout time.Duration `default:"30s" help:"What exchanges in flight get after SIGTERM."`
	// MaxInFlight bounds the model calls that are served at the same time; more are refused with 503. 0: no bound.
	MaxInFlight int64 `default:"0" help:"At most this many model calls at once; more are refused with 503 and Retry-After. 0: no bound."`
	// MaxInFlightPerRollout bounds those of one rollout. 0: no bound.
	MaxInFlightPerRollout int64 `default:"0" help:"The same for the calls of one rollout. 0: no bound."`

	// AuthTokenFile holds the bearer tokens that clients must present on the proxy port, one a line; reloaded when it changes.
	AuthTokenFile string `help:"File with one bearer token a line that clients must present on the proxy port; reloaded when it changes."`
	// Debug serves /debug/pprof and the reading API on the admin port.
	Debug bool `help:"Serve /debug/pprof and the reading API on the admin port; with an admin address that is not loopback only with --api-token-file."`
	// APITokenFile holds the bearer tokens for /debug/pprof and the reading API, one a line.
	APITokenFile string `name:"api-token-file" help:"File with one bearer token a line for /debug/pprof and the reading API."`
	// TLSCert is the certificate chain of the proxy port, as PEM. With it, and TLSKey, the port speaks https.
	TLSCert string `name:"tls-cert" placeholder:"FILE" help:"PEM file with the certificate chain of the proxy port, which then speaks https; read again when it changes."`
	// TLSKey is the key of TLSCert.
	TLSKey string `name:"tls-key" placeholder:"FILE" help:"PEM file with the key of --tls-cert; read again when it changes."`

	// LogLevel is debug, info, warn or error.
	LogLevel string `default:"info" help:"debug, info, warn, error."`
	// LogFormat is auto, json or console; auto is console on a terminal.
	LogFormat string `default:"auto" help:"auto (console on a terminal, JSON elsewhere), json, console."`
}

// Capture policies and raw body policies as the settings spell them.
const (
	CaptureBestEffort = "best-effort"
	CaptureRequired   = "required"
	CaptureOff        = "off"
)

// Settings of token-capture.
const (
	tokenCaptureOff    = "off"
	tokenCaptureAuto   = "auto"
	tokenCaptureAlways = "always"
)

// minSealKey is the shortest key that reasoning is sealed with, in bytes.
const minSealKey = 16

// maxCopy is the largest capture-max-bytes: a record holds up to two bodies parsed and as text.
const maxCopy = 64 << 20

// Problem is a setting that cannot be used.
type Problem struct {
	Setting string // spelled as the flag, without dashes
	Err     error
}

func (p *Problem) Error() string { return "--" + p.Setting + ": " + p.Err.Error() }
func (p *Problem) Unwrap() error { return p.Err }

// Validate joins every problem of the settings: each a *Problem that names its setting, or a *rewrite.KeyError.
func (c *Config) Validate() error {
	var errs []error
	bad := func(setting, format string, args ...any) {
		errs = append(errs, &Problem{setting, fmt.Errorf(format, args...)})
	}
	oneOf := func(setting, value string, words ...string) {
		for _, w := range words {
			if value == w {
				return
			}
		}
		bad(setting, "%q is none of %s", value, strings.Join(words, ", "))
	}
	notNegative := func(setting string, d time.Duration) {
		if d < 0 {
			bad(setting, "%s is negative", d)
		}
	}
	if _, _, err := net.SplitHostPort(c.Listen); err != nil {
		bad("listen", "%q is no address: want host:port", c.Listen)
	}
	if c.AdminListen != "" {
		if _, _, err := net.SplitHostPort(c.AdminListen); err != nil {
			bad("admin-listen", "%q is no address: want host:port", c.AdminListen)
		}
	}
	if _, err := parseUpstream(c.Upstream); err != nil {
		bad("upstream", "%w", err)
	}
	seen := map[string]bool{}
	for _, d := range c.UpstreamDialects {
		oneOf("upstream-dialects", d, string(canon.Chat), string(canon.Messages), string(canon.Responses))
		if seen[d] {
			bad("upstream-dialects", "%q is named twice", d)
		}
		seen[d] = true
	}
	if len(c.UpstreamDialects) == 0 {
		bad("upstream-dialects", "at least one is needed")
	}
	notNegative("upstream-idle-timeout", c.UpstreamIdleTimeout)
	notNegative("upstream-conn-idle", c.UpstreamConnIdle)
	notNegative("client-write-timeout", c.ClientWriteTimeout)
	notNegative("keepalive", c.Keepalive)
	notNegative("keepalive-open", c.KeepaliveOpen)
	errs = append(errs, c.Rewrite.Validate())
	notNegative("drain-timeout", c.DrainTimeout)
	if c.CaptureDeadline <= 0 {
		bad("capture-deadline", "%s: a deadline has to be above 0", c.CaptureDeadline)
	}
	if c.UpstreamConcurrency < 0 {
		bad("upstream-concurrency", "%d is negative", c.UpstreamConcurrency)
	}
	oneOf("capture", c.Capture, CaptureBestEffort, CaptureRequired, CaptureOff)
	oneOf("durability", c.Durability, string(capture.DurabilityJournal), string(capture.DurabilityFile), string(capture.DurabilityAsync))
	c.validateTokens(bad, oneOf)
	oneOf("capture-raw", c.CaptureRaw, "auto", "always", "never")
	if c.Capture != CaptureOff && c.Store == "" {
		bad("store", "a folder is needed unless --capture is off")
	}
	if c.CaptureMaxBytes < 1 || c.CaptureMaxBytes > maxCopy {
		bad("capture-max-bytes", "%s is not between 1 and %s: the line of a record must stay one that readers accept", c.CaptureMaxBytes, Size(maxCopy))
	}
	if c.MaxRequestBytes < 1 {
		bad("max-request-bytes", "%s: a limit has to be above 0", c.MaxRequestBytes)
	}
	if c.StoreMode != 0 && !capture.ValidMode(fs.FileMode(c.StoreMode)) {
		bad("store-mode", "%s: want an octal mode that its owner can read and write, others not write, and nobody execute", c.StoreMode)
	}
	if c.MaxInFlight < 0 {
		bad("max-in-flight", "%d is negative", c.MaxInFlight)
	}
	if c.MaxInFlightPerRollout < 0 {
		bad("max-in-flight-per-rollout", "%d is negative", c.MaxInFlightPerRollout)
	}
	switch {
	case c.TLSCert == "" && c.TLSKey == "":
	case c.TLSKey == "":
		bad("tls-key", "is missing: --tls-cert needs its key")
	case c.TLSCert == "":
		bad("tls-cert", "is missing: --tls-key needs its certificate")
	default:
		if _, err := loadPair(c.TLSCert, c.TLSKey); err != nil {
			bad("tls-cert", "%w", err)
		}
	}
	oneOf("log-level", c.LogLevel, "debug", "info", "warn", "error")
	oneOf("log-format", c.LogFormat, "auto", "json", "console")
	for _, f := range []struct{ setting, path string }{
		{"upstream-api-key-file", c.UpstreamAPIKeyFile}, {"auth-token-file", c.AuthTokenFile}, {"api-token-file", c.APITokenFile},
	} {
		if f.path == "" {
			continue
		}
		switch tokens, err := readTokens(f.path); {
		case err != nil:
			bad(f.setting, "%w", err)
		case len(tokens) == 0:
			bad(f.setting, "%s holds no token", f.path)
		}
	}
	if f := c.Rewrite.SealKeyFile; f != "" {
		switch key, err := os.ReadFile(f); {
		case err != nil:
			errs = append(errs, &rewrite.KeyError{Key: "reasoning_seal_key_file", Err: err})
		case len(bytes.TrimSpace(key)) < minSealKey:
			errs = append(errs, &rewrite.KeyError{Key: "reasoning_seal_key_file", Err: fmt.Errorf("%s holds less than %d bytes", f, minSealKey)})
		}
	}
	if c.Debug && c.APITokenFile == "" && c.AdminListen != "" && !loopback(c.AdminListen) {
		bad("debug", "the admin address %s is not loopback: profiles would be open to everybody; set --api-token-file or a loopback --admin-listen", c.AdminListen)
	}
	return errors.Join(errs...)
}

// validateTokens looks at the settings of token capture.
func (c *Config) validateTokens(bad func(setting, format string, args ...any), oneOf func(setting, value string, words ...string)) {
	oneOf("token-capture", c.TokenCapture, tokenCaptureOff, tokenCaptureAuto, tokenCaptureAlways)
	if c.LogprobsMode != "" {
		oneOf("logprobs-mode", c.LogprobsMode, "raw", "processed")
	}
	for _, r := range c.SideRequests {
		if _, _, err := parseSideRequest(r); err != nil {
			bad("side-requests", "%q: %w", r, err)
		}
	}
	if c.TokenCapture != tokenCaptureAuto && c.TokenCapture != tokenCaptureAlways {
		return
	}
	if c.Capture == CaptureOff {
		bad("token-capture", "tokens are joined to records: with --capture off there are none")
	}
	if !slices.Contains(c.UpstreamDialects, string(canon.Chat)) {
		bad("token-capture", "only a chat upstream tells token ids, and --upstream-dialects does not name it")
	}
}

// upstreamModel is the model that the upstream is asked for when a client asks for one; "" leaves it.
func (c *Config) upstreamModel(asked string) string {
	if to, ok := c.ModelMap[asked]; ok {
		return to
	}
	return c.Model
}

// parseUpstream reads the root of the model server and takes a last /v1 off it, since every path joined to it has its own.
func parseUpstream(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	switch {
	case strings.Contains(s, "@") && (err != nil || u.User != nil): // before anything is said that quotes it
		return nil, errors.New("credentials do not belong into the URL: use --upstream-api-key-file")
	case err != nil:
		return nil, fmt.Errorf("%q is no URL", s)
	case u.RawQuery != "" || u.Fragment != "":
		return nil, errors.New("a query or fragment has no place here")
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("%q: want an http or https URL", s)
	case u.Host == "":
		return nil, fmt.Errorf("%q names no host", s)
	}
	path := strings.TrimSuffix(strings.TrimRight(u.EscapedPath(), "/"), "/v1")
	u.RawPath = strings.TrimRight(path, "/")
	if u.Path, err = url.PathUnescape(u.RawPath); err != nil {
		return nil, fmt.Errorf("%q: %w", s, err)
	}
	return u, nil
}

func loopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// readTokens returns the lines of a token file that are not empty.
func readTokens(path string) ([]string, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var tokens []string
	for line := range strings.Lines(string(b)) {
		if line = strings.TrimSpace(line); line != "" {
			tokens = append(tokens, line)
		}
	}
	return tokens, nil
}
