// Command live shows the dashboard on live data: it starts the demo model, a sidecar and the distribution's Prometheus, lets traffic
// of every kind come and go for a while, and takes the picture of the documentation with headless Chromium. The page is that of
// deploy/grafana/screenshot, built before with npm.
//
//	go run ./live [-for 5m] [-page FOLDER] [-out FILE.png]
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"rolltap/e2e/deploy"
)

func main() {
	repository := flag.String("repository", "../..", "the root of the repository")
	during := flag.Duration("for", 5*time.Minute, "time of traffic")
	page := flag.String("page", "../../deploy/grafana/screenshot/dist", "folder of the built page")
	out := flag.String("out", "../../docs/dashboard.png", "picture to write")
	flag.Parse()
	if err := run(context.Background(), *repository, *page, *out, *during); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, repository, page, out string, during time.Duration) error {
	if _, err := os.Stat(filepath.Join(page, "index.html")); err != nil {
		return fmt.Errorf("build the page first: npm install && npm run build in deploy/grafana/screenshot: %w", err)
	}
	dir, err := os.MkdirTemp("", "rolltap-live-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	programs, err := deploy.Build(ctx, repository, dir)
	if err != nil {
		return err
	}
	pair, err := deploy.StartPair(programs, filepath.Join(dir, "store"), true)
	if err != nil {
		return err
	}
	defer pair.Kill()
	prometheus, err := deploy.StartPrometheus(dir, []deploy.Scrape{{Job: "rolltap", Address: pair.Admin}, {Job: "engine", Address: pair.Model}}, "")
	if err != nil {
		return err
	}
	defer prometheus.Kill()

	// Load that rises and falls.
	for end, n := time.Now().Add(during), 0; time.Now().Before(end); n++ {
		phase, cancel := context.WithTimeout(ctx, min(during/8, time.Until(end)))
		_, err := pair.Traffic().Mix(phase, []int{2, 4, 8, 5, 3, 6, 10, 4}[n%8])
		cancel()
		if err != nil {
			return err
		}
	}

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: http.FileServer(http.Dir(page)), ReadHeaderTimeout: 10 * time.Second}
	defer server.Close()
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()

	query := url.Values{"prometheus": {prometheus.URL()}, "job": {"rolltap"}, "engine": {"engine"},
		"minutes": {fmt.Sprint(during.Minutes())}, "step": {"3"}, "interval": {"15s"}}
	if out, err = filepath.Abs(out); err != nil {
		return err
	}
	text, err := exec.CommandContext(ctx, "chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--user-data-dir="+filepath.Join(dir, "chromium"),
		"--window-size=1600,4050", "--virtual-time-budget=30000", "--screenshot="+out, "http://"+listener.Addr().String()+"/?"+query.Encode()).CombinedOutput()
	if err != nil {
		return fmt.Errorf("chromium: %w\n%s", err, text)
	}
	select {
	case err := <-failed:
		return err
	default:
	}
	info, err := os.Stat(out)
	if err != nil {
		return errors.Join(err, errors.New(string(text)))
	}
	fmt.Printf("%s, %d KiB\n", out, info.Size()>>10)
	return nil
}
