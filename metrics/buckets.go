package metrics

// Buckets in seconds unless named otherwise. The first three repeat the "le"
// values of vLLM's histograms exactly: only then does client view minus engine
// view (queueing and network) come out bucket by bucket.
var (
	// vllm:time_to_first_token_seconds
	firstTokenBuckets = []float64{
		.001, .005, .01, .02, .04, .06, .08, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560,
	}
	// vllm:inter_token_latency_seconds
	interChunkBuckets = []float64{
		.01, .025, .05, .075, .1, .15, .2, .3, .4, .5, .75, 1, 2.5, 5, 7.5, 10, 20, 40, 80,
	}
	// vllm:e2e_request_latency_seconds, with three below it: refusals and
	// answers of a small model end long before 300 ms.
	durationBuckets = []float64{
		.01, .05, .1, .3, .5, .8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680,
	}
	// Our own work and the disk's. A 4 KiB append with fsync takes about 5 ms
	// on a loaded disk, so the middle of the list is the normal range.
	ownBuckets = []float64{
		.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1,
	}
	// vllm:request_prompt_tokens grows with the model's length; ours is fixed so
	// that the dashboards of two models look the same.
	tokenBuckets = []float64{
		1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5, 2e5, 5e5, 1e6,
	}
	batchBuckets = []float64{1, 2, 5, 10, 20, 50, 100, 200, 500}
)
