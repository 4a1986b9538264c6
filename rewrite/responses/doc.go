// Package responses is the dialect of POST /v1/responses: OpenAI's Responses and its imitations.
//
// Of what passes through it makes the record: stream.go, output.go and response.go fold raw JSON and never decode a text. For translations it reads and
// writes canon's types: requests in request_*.go, whole answers in answer_*.go; streams: decoder*.go read, object.go and encoder*.go write.
// The two share no state. It knows no other dialect, keeps nothing between calls, and decides nothing that dialect.Policy does not say.
package responses
