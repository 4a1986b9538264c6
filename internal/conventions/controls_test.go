package conventions

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// control is what stands against one threat of docs/threats.md: the test that holds it, and how the code looks without it.
type control struct {
	test  string // package and function, as in the document
	edits []edit
}

// edit turns a control off: old stands once in the file, new in its place.
type edit struct{ file, old, new string }

func one(test, file, old, new string) control { return control{test, []edit{{file, old, new}}} }

// controls has a row for each row of docs/threats.md, in its order.
var controls = []control{
	one("proxy.TestThreat_callWithoutToken", "proxy/proxy.go", `!presents(r.Header, x.tokens)`, `false`),
	one("proxy.TestThreat_tokenTravelsOn", "proxy/headers.go", `case x.h.tokens != nil:`, `case false:`),
	one("proxy.TestThreat_secretThatWasReplaced", "proxy/tokens.go", `if time.Since(f.looked) >= filePoll {`, `if false {`),
	one("proxy.TestThreat_clientCredentialLeaves", "proxy/headers.go", `		out.Del("Authorization")
		out.Del("X-Api-Key")
		out.Del("X-Goog-Api-Key")
		setCredential(`, `		setCredential(`),
	one("proxy.TestThreat_credentialIsKept", "proxy/headers.go", `part = key + "=***"`, `_ = key`),
	one("proxy.TestThreat_credentialInASetting", "proxy/config.go", `case strings.Contains(s, "@") && (err != nil || u.User != nil):`, `case false:`),
	one("proxy.TestThreat_weakTransport", "proxy/tls.go", `tls.VersionTLS12`, `tls.VersionTLS10`),
	one("proxy.TestThreat_probeIsSentElsewhere", "proxy/admin.go", `return http.ErrUseLastResponse`, `return nil`),
	one("proxy.TestThreat_adminOnTheProxyPort", "proxy/proxy.go", `	x := &exchange{h: h,`, `	if r.URL.Path == "/metrics" {
		h.metrics.Handler().ServeHTTP(w, r)
		return
	}
	x := &exchange{h: h,`),
	one("proxy.TestThreat_profilesWithoutToken", "proxy/admin.go", `!presents(r.Header, tokens.get())`, `len(tokens.get()) == 0`),
	one("proxy.TestThreat_profilesForEverybody", "proxy/config.go", `if c.Debug && c.APITokenFile == ""`, `if false && c.APITokenFile == ""`),
	one("proxy.TestThreat_webPage", "proxy/admin.go", `if r.Header.Get("Origin") != "" || !loopback(net.JoinHostPort(host, "0")) {`, `if host == "-" {`),

	one("proxy.TestThreat_smuggledRequest", "proxy/exchange.go", `if len(x.in.TransferEncoding) > 0 {`, `if false {`),
	one("proxy.TestThreat_tunnel", "proxy/exchange.go", `		pr.Out.Header.Del("Connection")
		pr.Out.Header.Del("Upgrade")
`, ``),
	one("proxy.TestThreat_tunnelByConnect", "proxy/proxy.go", `case r.Method == http.MethodConnect, target != "" && !strings.HasPrefix(target, "/"):`, `case false:`),
	one("proxy.TestThreat_otherProtocol", "proxy/server.go", `	only.SetHTTP1(true)`, `	only.SetHTTP1(true)
	only.SetUnencryptedHTTP2(true)`),
	one("proxy.TestThreat_headerOfThisHop", "proxy/headers.go", `ok && !namedByConnection(in, name)`, `ok`),
	one("proxy.TestThreat_pathThatIsNoName", "proxy/proxy.go", `case x.route.Prefixed && !capture.ValidID(x.route.Rollout):`, `case false:`),
	one("capture.TestInvalidID", "capture/store.go", `	if !ValidID(r.Rollout) {
		r.release()`, `	if false {
		r.release()`),

	one("proxy.TestThreat_slowHead", "proxy/server.go", `ReadHeaderTimeout: headTime, `, ``),
	one("proxy.TestThreat_bodyThatNeverComes", "proxy/exchange.go", `SetReadDeadline(x.start.Add(x.h.uploadSilence))`, `SetReadDeadline(time.Time{})`),
	one("proxy.TestThreat_readerThatStopped", "proxy/conn.go", `if now.Sub(progress) >= c.limit {`, `if now.Sub(progress) < 0 {`),
	one("proxy.TestThreat_largeHead", "proxy/server.go", `MaxHeaderBytes: headBytes, `, `MaxHeaderBytes: 1 << 30, `),
	one("proxy.TestThreat_largeBody", "proxy/translate_request.go", `	if x.requestBytes.Load() > limit { // its length was not announced
		return nil, errTooLarge
	}
`, ``),
	one("proxy.TestThreat_decompressionBomb", "proxy/translate_request.go", `	case n > limit:
		return nil, errTooLarge
`, ``),
	one("proxy.TestThreat_nesting", "internal/jsonx/doc.go", `const MaxDepth = 512`, `const MaxDepth = 64 << 10`),
	one("proxy.TestThreat_flood", "proxy/limits.go", `case f.most > 0 && f.all >= f.most:`, `case false:`),
	one("proxy.TestThreat_floodOfOneRollout", "proxy/limits.go", `case rollout != "" && f.mostOfOne > 0 && f.rollouts[rollout] >= f.mostOfOne:`, `case false:`),
	one("metrics.TestLabelsAreBounded", "metrics/words.go", `f.vec.WithLabelValues(other).Inc()`, `f.vec.WithLabelValues(w).Inc()`),

	one("proxy.TestThreat_fullDisk", "proxy/limits.go", `if x.callID == "" || x.h.cfg.Capture != CaptureRequired && x.taught == nil {`, `if true {`),
	one("proxy.TestThreat_lossThatDoesNotShow", "proxy/limits.go", `if !errors.Is(err, capture.ErrLow) {`, `if err == nil || errors.Is(err, capture.ErrLow) {`),
	{"capture.TestDataFileThatBecomesALink", []edit{
		{"capture/file.go", `os.O_RDWR|unix.O_NOFOLLOW|unix.O_NONBLOCK`, `os.O_RDWR|unix.O_NONBLOCK`},
		{"capture/file.go", `unix.O_CLOEXEC|unix.O_NOFOLLOW|unix.O_NONBLOCK`, `unix.O_CLOEXEC|unix.O_NONBLOCK`},
		{"capture/file.go", "	st, err := os.Lstat(path)\n", "	st, err := os.Stat(path)\n"},
	}},
	one("capture.TestMarkerThatIsALink", "capture/open.go", `flag|unix.O_NOFOLLOW|unix.O_NONBLOCK`, `flag|unix.O_NONBLOCK`),
	one("capture/training.TestFilesThatAreLinks", "capture/training/file.go", `flag|unix.O_NOFOLLOW|unix.O_NONBLOCK`, `flag|unix.O_NONBLOCK`),
	one("capture.TestModesUnderAnyUmask", "internal/storefs/folder.go", `return 0o640`, `return 0o644`),
	one("capture.TestCopyLeavesNoFile", "capture/spool.go", `named: os.Remove(f.Name()) != nil`, `named: true`),
	one("capture.TestKeep_notWhatIsNotOver", "capture/keep.go", `err != nil || !sealed {`, `err != nil && !sealed {`),
	one("proxy.TestThreat_itemOfAnotherRollout", "proxy/references.go", `m.items[memoryKey{rollout, id}]`, `m.items[memoryKey{"mine", id}]`),
	one("rewrite.TestSealsHoldNothingButTexts", "rewrite/seal.go", `	return t, p[end:], isInterior(t)`, `	return t, p[end:], true`),
	one("internal/cli.TestInert", "capture/trajectory/text.go", `	return unicode.In(r, unicode.Cc, unicode.Cf)
}`, `	return false && unicode.In(r, unicode.Cc, unicode.Cf)
}`),
}

// off is the file without the control.
func (e edit) off(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(e.file)))
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(text), e.old); n != 1 {
		t.Fatalf("%s: the control stands there %d times, want once: %s", e.file, n, e.old)
	}
	return strings.Replace(string(text), e.old, e.new, 1)
}

// TestControls: each threat of the document has a control that is where it is said to be, and a test that exists. That the test
// fails without the control, and no other does, takes minutes: see mutate_test.go.
func TestControls(t *testing.T) {
	var want, got []string
	for _, c := range controls {
		want = append(want, c.test)
		pkg, name, _ := strings.Cut(c.test, ".")
		files, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(pkg), "*_test.go"))
		if err != nil || len(files) == 0 {
			t.Errorf("%s: no tests: %v", pkg, err)
		}
		if !slices.ContainsFunc(files, func(file string) bool {
			text, err := os.ReadFile(file)
			return err == nil && strings.Contains(string(text), "func "+name+"(t *testing.T)")
		}) {
			t.Errorf("there is no %s", c.test)
		}
		if len(c.edits) == 0 {
			t.Errorf("%s: no control", c.test)
		}
		for _, e := range c.edits {
			e.off(t)
		}
	}
	for _, m := range regexp.MustCompile("(?m)^\\| .+ \\| .+ \\| `([a-z/]+\\.Test\\w+)` \\|$").FindAllStringSubmatch(documents(t)["docs/threats.md"], -1) {
		got = append(got, m[1])
	}
	if len(got) < 30 || !slices.Equal(got, want) {
		t.Errorf("docs/threats.md has\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
