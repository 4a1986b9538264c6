// Package chat is the dialect of POST /v1/chat/completions: OpenAI's Chat Completions with what vLLM and others add to it.
package chat
