// Package messages is the dialect of POST /v1/messages: Anthropic's Messages and its imitations.
package messages
