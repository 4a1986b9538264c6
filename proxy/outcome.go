package proxy

import (
	"net/http"

	"rolltap/rewrite/canon"
	"rolltap/rewrite/dialect"
)

// Outcome words of an exchange: the record's rolltap.outcome, the label of requests_total and the field of the log line.
const (
	outcomeOK              = "ok"
	outcomeClientGone      = "client_gone"
	outcomeUpstreamCut     = "upstream_cut"
	outcomeUpstreamError   = "upstream_error"
	outcomeUpstreamTimeout = "upstream_timeout"
	outcomeRefused         = "refused"
	outcomeAborted         = "aborted"
)

// situation is what became of an exchange: a row of the one table.
type situation uint8

const (
	situationNone        situation = iota // not decided yet
	situationWhole                        // the whole answer arrived
	situationErrorFrame                   // an error event ended the stream
	situationNoTerminal                   // a stream ended cleanly without its terminal event
	situationTruncated                    // the same of a translated one, whatever status the client was given for it
	situationInvalid                      // an answer that cannot be translated
	situationOverflow                     // the context is too long, and policy answers that with an empty turn
	situationUnavailable                  // refused, DNS, TLS, or broken before a complete head
	situationCut                          // broken inside the answer
	situationSilent                       // silence beyond the idle timeout
	situationClientGone                   // the client left before the end was released
	situationRefused                      // rolltap refused the request itself
	situationDrained                      // the drain timeout ended it
	situationPanicked                     // a fault of our own
	situationNotDurable                   // required, and the record is not on disk
)

// ending is what a situation means to the record, the metrics and the log.
type ending struct {
	outcome  string
	category string // error_category of the record; "" is null
}

// answerFacts are the things an ending depends on beside its situation.
type answerFacts struct {
	status   int             // status that the client was or would have been sent
	verdict  dialect.Verdict // of a stream
	bodySeen bool            // the answer had a body
	object   bool            // the answer is a JSON object, or was folded into one
}

// end is the table "what happens when" of the record.
func (s situation) end(f answerFacts) ending {
	switch s {
	case situationWhole:
		switch {
		case f.status >= 400:
			return ending{outcomeUpstreamError, statusCategory(f.status)}
		case f.verdict == dialect.Incomplete:
			return ending{outcomeOK, "incomplete"}
		case f.bodySeen && !f.object:
			return ending{outcomeOK, "capture_parse_error"}
		}
		return ending{outcomeOK, ""}
	case situationErrorFrame:
		if f.status >= 400 {
			return ending{outcomeUpstreamError, statusCategory(f.status)}
		}
		return ending{outcomeUpstreamError, "upstream_error"}
	case situationNoTerminal:
		if f.status >= 400 {
			return ending{outcomeUpstreamError, statusCategory(f.status)}
		}
		return ending{outcomeUpstreamCut, "stream_truncated"}
	case situationTruncated:
		return ending{outcomeUpstreamCut, "stream_truncated"}
	case situationInvalid:
		return ending{outcomeUpstreamError, "upstream_error"}
	case situationOverflow:
		return ending{outcomeUpstreamError, canon.CodeOverflow}
	case situationUnavailable:
		return ending{outcomeUpstreamError, "connection"}
	case situationCut:
		return ending{outcomeUpstreamCut, "connection"}
	case situationSilent:
		return ending{outcomeUpstreamTimeout, "timeout"}
	case situationClientGone:
		return ending{outcomeClientGone, "cancelled"}
	case situationRefused:
		return ending{outcomeRefused, statusCategory(f.status)}
	default: // drained, panicked, not durable, and whatever was never decided
		return ending{outcomeAborted, "exception"}
	}
}

// statusCategory is the error category that a status of 400 or more stands for.
func statusCategory(status int) string {
	switch {
	case status < 400:
		return ""
	case status == http.StatusRequestTimeout, status == http.StatusGatewayTimeout:
		return "timeout"
	case status == http.StatusTooManyRequests:
		return "rate_limit"
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return "auth"
	case status == http.StatusNotFound:
		return "not_found"
	case status < 500:
		return "client_error"
	}
	return "upstream_error"
}

// Codes of the answers that rolltap makes itself: x-rolltap-error, and error.code where the dialect has one.
const (
	codeUpstreamUnavailable = "upstream_unavailable"
	codeUpstreamCut         = "upstream_cut"
	codeUpstreamInvalid     = "upstream_invalid" // as canon.CodeUpstreamInvalid
	codeUpstreamTimeout     = "upstream_timeout"
	codeUnsupported         = "unsupported_parameter" // as canon.CodeUnsupported
	codeTooLarge            = "request_too_large"
	codeEncoding            = "unsupported_encoding"
	codeInvalidRequest      = "invalid_request"
	codeNotSupported        = "not_supported"
	codeUnauthorized        = "unauthorized"
	codeUpgradeRequired     = "upgrade_required"
	codeInvalidRolloutID    = "invalid_rollout_id"
	codeSealed              = "sealed"
	codeStoreUnavailable    = "store_unavailable"
	codeInternal            = "internal"
	codeOverloaded          = "overloaded"
	codeLoop                = "loop_detected"
)
