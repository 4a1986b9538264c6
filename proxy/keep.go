package proxy

import (
	"context"
	"time"

	"go.uber.org/zap"

	"rolltap/capture"
	"rolltap/capture/training"
	"rolltap/metrics"
)

// keepEvery is how often the store is looked over for rollouts that are not to be kept.
const keepEvery = time.Minute

// retention removes rollouts that are not to be kept, while the server runs. Several processes may do so to one store.
type retention struct {
	dir    string
	keep   capture.Keep
	tokens *training.Store // nil without token capture
	log    *zap.Logger
	stayed int // at the last look, of those that should have gone
}

func newRetention(cfg *Config, tokens *training.Store, m *metrics.Metrics, log *zap.Logger) *retention {
	r := &retention{dir: cfg.Store, tokens: tokens, log: log}
	r.keep = capture.Keep{
		Age: cfg.Keep.Age, Bytes: int64(cfg.Keep.Bytes),
		Wanted: func(rollout string) bool { return training.Held(cfg.Store, rollout) }, // until who trains has dropped its tokens
		Removed: func(gone capture.Removed) {
			m.StoreRemoved(gone.Bytes)
			log.Info("a rollout was removed, see --keep", zap.String("rollout", gone.Rollout), zap.Int64("bytes", gone.Bytes), zap.Time("last_write", gone.Last))
		},
	}
	return r
}

// run looks the store over until ctx is done.
func (r *retention) run(ctx context.Context) {
	tick := time.NewTicker(keepEvery)
	defer tick.Stop()
	for {
		r.look(ctx)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

func (r *retention) look(ctx context.Context) {
	stayed, err := r.keep.Apply(ctx, r.dir)
	if err != nil {
		r.log.Error("not all rollouts beyond --keep could be removed", zap.Error(err))
	}
	if stayed > 0 && r.stayed == 0 {
		r.log.Warn("rollouts beyond --keep stay: they are not sealed, have calls in flight or token ids that nobody has dropped, or are locked", zap.Int("rollouts", stayed))
	}
	r.stayed = stayed
	if r.tokens == nil || r.keep.Age <= 0 {
		return
	}
	gone, err := r.tokens.SweepRetired(ctx, r.keep.Age)
	if err != nil && ctx.Err() == nil {
		r.log.Error("not all that is left of dropped token ids could be removed", zap.Error(err))
	}
	if gone > 0 {
		r.log.Info("what was left of dropped token ids was removed, see --keep", zap.Int("rollouts", gone))
	}
}
