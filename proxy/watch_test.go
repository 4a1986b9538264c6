package proxy

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestSilence(t *testing.T) {
	const limit = 10 * time.Second
	for _, c := range []struct {
		name string
		act  func(s *silence)
		want bool // cancelled
	}{
		{"nobody waits for the upstream", func(*silence) { time.Sleep(5 * limit) }, false},
		{"a wait shorter than the limit", func(s *silence) { s.begin(); time.Sleep(limit - time.Second); s.end(); time.Sleep(limit) }, false},
		{"a wait longer than the limit", func(s *silence) { s.begin(); time.Sleep(limit + time.Second) }, true},
		{"many waits that are longer only together", func(s *silence) {
			for range 10 {
				s.begin()
				time.Sleep(limit / 2)
				s.end()
			}
		}, false},
		{"a long wait behind many short ones", func(s *silence) {
			for range 3 {
				s.begin()
				time.Sleep(limit / 2)
				s.end()
			}
			s.begin()
			time.Sleep(2*limit + time.Second)
		}, true},
		{"a request that is still on its way up", func(s *silence) {
			s.begin()
			for range 10 {
				time.Sleep(limit / 2)
				s.progress()
			}
		}, false},
		{"progress before anybody waits starts no wait", func(s *silence) { s.progress(); time.Sleep(3 * limit) }, false},
		{"a stopped watch", func(s *silence) { s.begin(); s.stop(); time.Sleep(3 * limit) }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				var s silence
				s.arm(limit, time.Now(), cancel)
				defer s.stop()
				c.act(&s)
				synctest.Wait()
				if got := context.Cause(ctx) == errSilence; got != c.want {
					t.Errorf("cancelled for silence: got %t, want %t", got, c.want)
				}
			})
		})
	}
}

func TestSilenceWithoutLimitWatchesNothing(t *testing.T) {
	var s silence
	s.arm(0, time.Now(), func(error) { t.Error("cancelled") })
	s.begin()
	s.end()
	s.stop()
}
