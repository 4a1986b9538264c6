package chat

import (
	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
)

// paramOf is the parameter that a member of a request is, and the kind of its values; KindInvalid: it is none. The limit of tokens has two
// names and is read apart.
func paramOf(name string) (canon.Param, jsonx.Kind) {
	switch name {
	case "temperature":
		return canon.ParamTemperature, jsonx.KindNumber
	case "top_p":
		return canon.ParamTopP, jsonx.KindNumber
	case "top_k":
		return canon.ParamTopK, jsonx.KindNumber
	case "min_p":
		return canon.ParamMinP, jsonx.KindNumber
	case "seed":
		return canon.ParamSeed, jsonx.KindNumber
	case "frequency_penalty":
		return canon.ParamFrequencyPenalty, jsonx.KindNumber
	case "presence_penalty":
		return canon.ParamPresencePenalty, jsonx.KindNumber
	case "repetition_penalty":
		return canon.ParamRepetitionPenalty, jsonx.KindNumber
	case "logit_bias":
		return canon.ParamLogitBias, jsonx.KindObject
	case "n":
		return canon.ParamN, jsonx.KindNumber
	case "top_logprobs":
		return canon.ParamTopLogprobs, jsonx.KindNumber
	case "verbosity":
		return canon.ParamVerbosity, jsonx.KindString
	case "user":
		return canon.ParamUser, jsonx.KindString
	case "metadata":
		return canon.ParamMetadata, jsonx.KindObject
	case "service_tier":
		return canon.ParamServiceTier, jsonx.KindString
	case "store":
		return canon.ParamStore, jsonx.KindBool
	case "prompt_cache_key":
		return canon.ParamPromptCacheKey, jsonx.KindString
	case "prompt_cache_retention":
		return canon.ParamPromptCacheRetention, jsonx.KindString
	case "safety_identifier":
		return canon.ParamSafetyIdentifier, jsonx.KindString
	case "modalities":
		return canon.ParamModalities, jsonx.KindArray
	case "audio":
		return canon.ParamAudio, jsonx.KindObject
	case "prediction":
		return canon.ParamPrediction, jsonx.KindObject
	case "web_search_options":
		return canon.ParamWebSearchOptions, jsonx.KindObject
	case "moderation":
		return canon.ParamModeration, jsonx.KindObject
	case "cache_control":
		return canon.ParamCacheControl, jsonx.KindObject
	}
	return 0, jsonx.KindInvalid
}
