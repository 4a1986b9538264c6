package canon

// Param is a parameter that is a number, a word or an object in every dialect that has it.
type Param uint8

// The parameters, named as Chat names them.
const (
	ParamMaxTokens Param = iota // Chat: max_completion_tokens, else max_tokens
	ParamTemperature
	ParamTopP
	ParamTopK
	ParamMinP
	ParamSeed
	ParamFrequencyPenalty
	ParamPresencePenalty
	ParamRepetitionPenalty
	ParamLogitBias
	ParamN
	ParamTopLogprobs
	ParamVerbosity
	ParamUser
	ParamMetadata
	ParamServiceTier
	ParamStore
	ParamPromptCacheKey
	ParamPromptCacheRetention
	ParamSafetyIdentifier
	ParamModalities
	ParamAudio
	ParamPrediction
	ParamWebSearchOptions
	ParamModeration
	ParamContextManagement
	ParamContainer
	ParamMCPServers
	ParamCacheControl // of the whole request
	NumParams
)

// String is the parameter's name in Chat; Dialect.Called tells what others call it.
func (p Param) String() string {
	switch p {
	case ParamMaxTokens:
		return "max_tokens"
	case ParamTemperature:
		return "temperature"
	case ParamTopP:
		return "top_p"
	case ParamTopK:
		return "top_k"
	case ParamMinP:
		return "min_p"
	case ParamSeed:
		return "seed"
	case ParamFrequencyPenalty:
		return "frequency_penalty"
	case ParamPresencePenalty:
		return "presence_penalty"
	case ParamRepetitionPenalty:
		return "repetition_penalty"
	case ParamLogitBias:
		return "logit_bias"
	case ParamN:
		return "n"
	case ParamTopLogprobs:
		return "top_logprobs"
	case ParamVerbosity:
		return "verbosity"
	case ParamUser:
		return "user"
	case ParamMetadata:
		return "metadata"
	case ParamServiceTier:
		return "service_tier"
	case ParamStore:
		return "store"
	case ParamPromptCacheKey:
		return "prompt_cache_key"
	case ParamPromptCacheRetention:
		return "prompt_cache_retention"
	case ParamSafetyIdentifier:
		return "safety_identifier"
	case ParamModalities:
		return "modalities"
	case ParamAudio:
		return "audio"
	case ParamPrediction:
		return "prediction"
	case ParamWebSearchOptions:
		return "web_search_options"
	case ParamModeration:
		return "moderation"
	case ParamContextManagement:
		return "context_management"
	case ParamContainer:
		return "container"
	case ParamMCPServers:
		return "mcp_servers"
	case ParamCacheControl:
		return "cache_control"
	}
	return "no parameter"
}
