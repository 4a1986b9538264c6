// Package responses is the dialect of POST /v1/responses: OpenAI's Responses and its imitations.
package responses
