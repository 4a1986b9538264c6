package metrics

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

const namespace = "rolltap"

// Build names the program for build_info. Empty members are shown empty.
type Build struct {
	Version, Commit, GoVersion string
}

// Metrics is every series of one server. Make it with New; all methods are safe
// for concurrent use and none of them blocks.
type Metrics struct {
	registry *prometheus.Registry

	requests *prometheus.CounterVec
	// pairs holds the handles of one (dialect, upstream dialect) pair, nil until
	// the pair is first used: a pair nobody uses must not show up as zeros.
	pairs [nDialects][nUpstreams]atomic.Pointer[outcomes]

	inFlight             prometheus.Gauge
	duration, firstToken prometheus.Histogram
	interChunk, overhead prometheus.Histogram
	prompt, generation   prometheus.Histogram

	finish, losses, keepalives, uncaptured, records, truncated, tokens family

	captured, trainable, sideMarks prometheus.Counter

	commit, fsync, batch, lockWait prometheus.Histogram
	bytes, incomplete              prometheus.Counter
	storeLow, removed, removedSize prometheus.Counter

	storeFree  storeFree
	logDropped atomic.Pointer[func() int64]
}

// Sizes of the pair table: every dialect word, and one more for "other".
const (
	nDialects  = 4 + 1
	nUpstreams = 4 + 1
)

// outcomes are the counters of one pair, in the order of outcomeWords and then
// other, which stays nil until it is needed.
type outcomes [7]prometheus.Counter

// New returns metrics on a registry of their own, with the go_* and process_*
// series and build_info in it.
func New(b Build) *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry()}
	r := m.registry
	r.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	histogram := func(name, help string, buckets []float64) prometheus.Histogram {
		h := prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: namespace, Name: name, Help: help, Buckets: buckets,
		})
		r.MustRegister(h)
		return h
	}
	counter := func(name, help string) prometheus.Counter {
		c := prometheus.NewCounter(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help})
		r.MustRegister(c)
		return c
	}

	m.requests = prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: namespace, Name: "requests_total",
		Help: "Model calls that ended, by how they ended.",
	}, []string{"dialect", "upstream_dialect", "outcome"})
	m.inFlight = prometheus.NewGauge(prometheus.GaugeOpts{
		Namespace: namespace, Name: "in_flight_requests",
		Help: "Requests on the proxy port now.",
	})
	r.MustRegister(m.requests, m.inFlight)

	m.duration = histogram("request_duration_seconds", "Whole time of a model call.", durationBuckets)
	m.firstToken = histogram("time_to_first_token_seconds", "Time to the first delta of a stream.", firstTokenBuckets)
	m.interChunk = histogram("inter_chunk_seconds", "Gap between two chunks of a stream.", interChunkBuckets)
	m.overhead = histogram("overhead_seconds", "Time of an exchange spent in rolltap itself.", ownBuckets)
	m.prompt = histogram("prompt_tokens", "Prompt tokens of a model call, cached ones included.", tokenBuckets)
	m.generation = histogram("generation_tokens", "Generated tokens of a model call.", tokenBuckets)

	m.finish = newFamily(r, "finish_total", "Answers by the reason they gave for their end.", "finish_reason", finishWords)
	m.losses = newFamily(r, "losses_total", "Things that translations had to leave out.", "reason", lossWords)
	m.keepalives = newFamily(r, "keepalives_total", "Keep-alives sent into silent streams.", "dialect", dialectWords)
	m.uncaptured = newFamily(r, "uncaptured_requests_total", "Model calls for which no record was possible.", "reason", uncapturedWords)
	m.records = newFamily(r, "capture_records_total", "Records by what became of them.", "result", resultWords)
	m.truncated = newFamily(r, "capture_truncated_total", "Bodies that records do not hold whole.", "body", bodyWords)

	m.tokens = newFamily(r, "token_calls_total", "Calls under token capture, by whether their token ids were kept, and why not.", "result", tokenWords)
	m.captured = counter("captured_tokens_total", "Generated tokens that were kept with their log probabilities.")
	m.trainable = counter("trainable_tokens_total", "Those of them whose call is the first of its conversation or follows a known one.")
	m.sideMarks = counter("token_unseen_requests_total", "Requests under the training prefix that may have generated what nobody captured.")

	m.commit = histogram("capture_commit_seconds", "Time to make one batch of records durable.", ownBuckets)
	m.fsync = histogram("capture_fsync_seconds", "Time of one sync of a data file or of the journal.", ownBuckets)
	m.batch = histogram("capture_batch_records", "Records made durable together.", batchBuckets)
	m.lockWait = histogram("capture_lock_wait_seconds", "Wait for the lock of a data file.", ownBuckets)
	m.bytes = counter("capture_bytes_total", "Bytes written to data files.")
	m.incomplete = counter("capture_incomplete_total", "Rollouts marked as incomplete.")

	m.storeLow = counter("store_low_total", "Times that the free space of the store fell below its watermark.")
	m.removed = counter("store_removed_rollouts_total", "Rollouts that were removed because they are not to be kept.")
	m.removedSize = counter("store_removed_bytes_total", "Bytes of rollouts that were removed because they are not to be kept.")

	r.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
		Namespace: namespace, Name: "log_dropped_lines_total", Help: "Log lines that whoever reads the log did not take.",
	}, func() float64 {
		if read := m.logDropped.Load(); read != nil && *read != nil {
			return float64((*read)())
		}
		return 0
	}))
	m.storeFree.desc = prometheus.NewDesc(namespace+"_store_free_bytes",
		"Free space of the store's file system.", nil, nil)
	r.MustRegister(&m.storeFree)

	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Namespace: namespace, Name: "build_info", Help: "The running program; always 1.",
		ConstLabels: prometheus.Labels{"version": b.Version, "commit": b.Commit, "go_version": b.GoVersion},
	})
	info.Set(1)
	r.MustRegister(info)
	return m
}

// InFlight moves the number of requests on the proxy port: 1 at their start, -1
// at their end.
func (m *Metrics) InFlight(delta int) { m.inFlight.Add(float64(delta)) }

// Exchange is one model call that ended.
type Exchange struct {
	Dialect         string // of the client
	UpstreamDialect string // empty: nothing was sent upstream
	Outcome         string
	Duration        time.Duration
	TTFT            time.Duration // negative: no first token; of streams only
	Overhead        time.Duration // negative: unknown
	Stream          bool
	// PromptTokens and GenerationTokens are negative when unknown.
	PromptTokens, GenerationTokens int64
	Finish                         string   // in Chat's words; empty: none was given
	Losses                         []string // the reason of each loss
}

// Exchange counts a model call, once, when it has ended.
func (m *Metrics) Exchange(e Exchange) {
	m.countRequest(e.Dialect, e.UpstreamDialect, e.Outcome)
	m.duration.Observe(e.Duration.Seconds())
	if e.Stream && e.TTFT >= 0 {
		m.firstToken.Observe(e.TTFT.Seconds())
	}
	if e.Overhead >= 0 {
		m.overhead.Observe(e.Overhead.Seconds())
	}
	if e.PromptTokens >= 0 {
		m.prompt.Observe(float64(e.PromptTokens))
	}
	if e.GenerationTokens >= 0 {
		m.generation.Observe(float64(e.GenerationTokens))
	}
	if e.Finish != "" {
		m.finish.inc(e.Finish)
	}
	for _, reason := range e.Losses {
		m.losses.inc(reason)
	}
}

func (m *Metrics) countRequest(dialect, upstream, outcome string) {
	if upstream == "" {
		upstream = "none"
	}
	d, u, o := dialectWords.index(dialect), upstreamWords.index(upstream), outcomeWords.index(outcome)
	p := m.pairs[d][u].Load()
	if p == nil {
		// Two at once make the same handles, so whoever stores last changes nothing.
		p = new(outcomes)
		for i, w := range outcomeWords {
			p[i] = m.requests.WithLabelValues(dialectWords.at(d), upstreamWords.at(u), w)
		}
		m.pairs[d][u].Store(p)
	}
	if o < len(p) {
		p[o].Inc()
		return
	}
	m.requests.WithLabelValues(dialectWords.at(d), upstreamWords.at(u), other).Inc()
}

// InterChunk times the gap between two chunks of a stream.
func (m *Metrics) InterChunk(d time.Duration) { m.interChunk.Observe(d.Seconds()) }

// Keepalive counts one keep-alive sent to a client of the dialect.
func (m *Metrics) Keepalive(dialect string) { m.keepalives.inc(dialect) }

// Uncaptured counts a model call for which no record was possible.
func (m *Metrics) Uncaptured(reason string) { m.uncaptured.inc(reason) }

// CaptureRecord counts what became of one record: ok, late or lost.
func (m *Metrics) CaptureRecord(result string) { m.records.inc(result) }

// CaptureTruncated counts a body that a record does not hold whole: request, response, upstream.request or upstream.response.
func (m *Metrics) CaptureTruncated(body string) { m.truncated.inc(body) }

// TokenCall counts a call under token capture: its result, and what it generated when its tokens were kept.
func (m *Metrics) TokenCall(result string, generated int64, trainable bool) {
	m.tokens.inc(result)
	if generated <= 0 {
		return
	}
	m.captured.Add(float64(generated))
	if trainable {
		m.trainable.Add(float64(generated))
	}
}

// TokenUnseen counts a request under the training prefix that may have generated what nobody captured.
func (m *Metrics) TokenUnseen() { m.sideMarks.Inc() }

// CaptureBatch counts one batch that became durable: its records, the bytes
// written and the time from the lock on.
func (m *Metrics) CaptureBatch(records, bytes int, took time.Duration) {
	m.batch.Observe(float64(records))
	m.bytes.Add(float64(bytes))
	m.commit.Observe(took.Seconds())
}

// CaptureFsync times one sync of a data file or of the journal.
func (m *Metrics) CaptureFsync(d time.Duration) { m.fsync.Observe(d.Seconds()) }

// CaptureLockWait times the wait for the lock of a data file.
func (m *Metrics) CaptureLockWait(d time.Duration) { m.lockWait.Observe(d.Seconds()) }

// CaptureIncomplete counts a rollout that was marked as incomplete.
func (m *Metrics) CaptureIncomplete() { m.incomplete.Inc() }

// StoreLow counts a fall of the store's free space below its watermark.
func (m *Metrics) StoreLow() { m.storeLow.Inc() }

// StoreRemoved counts a rollout that is not kept any more, and the bytes of its files.
func (m *Metrics) StoreRemoved(bytes int64) {
	m.removed.Inc()
	m.removedSize.Add(float64(bytes))
}

// StoreFree names the function that tells the free bytes of the store. It is
// called at each scrape; while it fails, or is nil, the series is absent: a zero
// would raise the alarm for a full disk.
func (m *Metrics) StoreFree(read func() (int64, error)) { m.storeFree.read.Store(&read) }

// LogDropped names the function that tells how many log lines were lost so far. It is called at each scrape; while it is nil none were.
func (m *Metrics) LogDropped(read func() int64) { m.logDropped.Store(&read) }

// storeFree is a collector and no gauge: only a collector can be silent.
type storeFree struct {
	desc *prometheus.Desc
	read atomic.Pointer[func() (int64, error)]
}

func (s *storeFree) Describe(ch chan<- *prometheus.Desc) { ch <- s.desc }

func (s *storeFree) Collect(ch chan<- prometheus.Metric) {
	read := s.read.Load()
	if read == nil || *read == nil {
		return
	}
	if n, err := (*read)(); err == nil {
		ch <- prometheus.MustNewConstMetric(s.desc, prometheus.GaugeValue, float64(n))
	}
}
