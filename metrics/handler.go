package metrics

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Handler answers a scrape in the format that the scraper prefers: Prometheus
// text or OpenMetrics.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{
		EnableOpenMetrics: true,
		// One collector that fails (a /proc that cannot be read) must not take
		// all other series with it.
		ErrorHandling: promhttp.ContinueOnError,
	})
}
