package canon

// PartType says what a Part is.
type PartType uint8

// What messages and answers are made of.
const (
	TextPart      PartType = iota + 1 // Text
	RefusalPart                       // Text
	ReasoningPart                     // Text, Summary, Signature
	RedactedPart                      // Signature is the sealed content; nobody but its maker can read it
	CallPart                          // Call
	ResultPart                        // Result
	ImagePart                         // Media
	AudioPart                         // Media
	VideoPart                         // Media
	FilePart                          // Media: a document or any other file
	HostedPart                        // Raw: a tool that the provider ran itself, its call or its result
	ReferencePart                     // Text is the id of an item that the client has not sent again
	UnknownPart                       // Raw
)

// LostWhy is the reason of the loss where a dialect has no place for a part of this type in an answer.
func (t PartType) LostWhy() Reason {
	switch t {
	case RedactedPart, ReferencePart:
		return Foreign
	case TextPart, RefusalPart, ReasoningPart, CallPart, ImagePart, AudioPart, VideoPart, FilePart, HostedPart:
		return NoEquivalent
	}
	return NotKnown
}

// Part is a piece of a message, or of an answer. Only what its Type names is set, and Raw, Extra and Path may be.
type Part struct {
	Type PartType

	Text Text
	// Summary is what a Responses upstream sent as summary of reasoning; several summary parts are joined by an empty line. Text is the
	// reasoning itself. Where only one of them is known the other is nil.
	Summary Text
	// Signature is what the reasoning's maker sealed it with: a Messages signature, a Responses encrypted_content, or a seal of ours.
	Signature Text
	SignedBy  Dialect // the family of Signature; "" when it was opened as ours, or there is none

	Call   Call
	Result Result
	Media  Media

	Cites []Raw // citations or annotations, in the shape of the dialect that they came in
	Cache Raw   // cache_control

	ItemID Text     // id of the item in the dialect it came from, "" none
	Raw    Raw      // the whole block, item or part as it came; nil when there was none, as in Chat's flat messages
	Extra  []Member // members that nobody knows
	Path   string   // where it is in the client's request
}

// Call is a tool call.
type Call struct {
	ID        Text // call id, byte for byte
	Name      Text // as the tool is called on the side that the Call is on
	Namespace Text // Responses only
	// Arguments is the arguments' JSON text as the model wrote it, or the free text of a custom call: broken JSON stays broken.
	Arguments Text
	Custom    bool // a custom (freeform) call
}

// Result is a tool's result.
type Result struct {
	CallID Text
	Parts  []Part // text, images, files …; a plain string is one TextPart
	Plain  bool   // it came as a plain string
	Failed bool   // is_error
	Custom bool   // it answers a custom call
}

// Media is an image, a sound, a video or a file, by exactly one of URL, Data, FileID and Inline.
type Media struct {
	URL       Text   // http, https or data URL, as sent
	MediaType Text   // of Data: "image/png"
	Data      Text   // base64
	FileID    Text   // of a file that the provider keeps
	Inline    Text   // plain text of a document
	Parts     []Part // a document whose content is blocks
	Format    Text   // of sound, in OpenAI's words: "wav"
	Detail    Text   // of an image, OpenAI only
	Title     Text   // file name or title
}
