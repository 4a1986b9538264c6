package chat

import (
	"bytes"
	"encoding/base64"
	"strconv"
	"unicode/utf8"

	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
)

// A piece is an element of a content list that is being put together: a text, or a part with media.
type piece struct {
	before, text canon.Text
	part         *canon.Part
}

// where parts are: what a message of the user can hold a result cannot.
type where uint8

const (
	inMessage where = iota
	inResult
)

// flatten takes parts apart into what Chat can say.
func (w *callWriter) flatten(parts []canon.Part, at where) {
	for i := range parts {
		p := &parts[i]
		w.marks(p)
		switch p.Type {
		case canon.TextPart, canon.RefusalPart:
			w.pieces = append(w.pieces, piece{text: p.Text})
		case canon.FilePart:
			w.file(p, at)
		case canon.ImagePart, canon.AudioPart, canon.VideoPart:
			w.place(p, at)
		case canon.UnknownPart, canon.HostedPart:
			if at == inResult { // better its JSON than nothing (dialects.md 1.7.3)
				w.pieces = append(w.pieces, piece{text: jsonx.AppendEscaped(nil, p.Raw)})
				continue
			}
			w.loseKind(p)
		default:
			w.loseKind(p)
		}
	}
}

// place puts media where they may be.
func (w *callWriter) place(p *canon.Part, at where) {
	policy := w.o.Policy.ToolResultImages
	switch {
	case at == inMessage, policy == "inline":
		w.pieces = append(w.pieces, piece{part: p})
	case policy == "placeholder":
		w.pieces = append(w.pieces, piece{text: canon.Text("[" + mediaWord(p) + "]")})
		w.lose(p.Path, mediaWord(p), canon.ByPolicy)
	default:
		text := movedName(p, len(w.moved)) + " is in the next user message"
		w.pieces = append(w.pieces, piece{text: canon.Text(text)})
		w.moved = append(w.moved, p)
	}
}

// file inlines a document that is text, takes one that is blocks apart, and places any other.
func (w *callWriter) file(p *canon.Part, at where) {
	m := &p.Media
	var title canon.Text
	if len(m.Title) > 0 {
		title = append(append(canon.Text(nil), m.Title...), `\n\n`...)
	}
	switch {
	case m.Parts != nil:
		if title != nil {
			w.pieces = append(w.pieces, piece{text: m.Title})
		}
		w.flatten(m.Parts, at)
	case m.Inline != nil:
		w.pieces = append(w.pieces, piece{before: title, text: m.Inline})
	case m.URL != nil && !bytes.HasPrefix(m.URL, []byte("data:")):
		// Chat has no files by address; the model may have a tool that reads it.
		w.pieces = append(w.pieces, piece{before: title, text: m.URL})
		w.lose(p.Path, "file", canon.NoEquivalent)
	default:
		if text, ok := textOf(m); ok {
			w.pieces = append(w.pieces, piece{before: title, text: jsonx.AppendEscaped(nil, text)})
			return
		}
		w.place(p, at)
	}
}

// textOf is the content of a file that is text by its media type and in fact: vLLM has no files.
func textOf(m *canon.Media) ([]byte, bool) {
	kind, data := jsonx.Unquoted(m.MediaType), jsonx.Unquoted(m.Data)
	if m.URL != nil {
		kind, data, _ = bytes.Cut(bytes.TrimPrefix(jsonx.Unquoted(m.URL), []byte("data:")), []byte(";base64,"))
	}
	if !bytes.HasPrefix(kind, []byte("text/")) {
		return nil, false
	}
	text, err := base64.StdEncoding.AppendDecode(nil, data)
	return text, err == nil && utf8.Valid(text)
}

// markFailed says in words that a tool failed, since Chat has no other way.
func (w *callWriter) markFailed() {
	mark := canon.Text("Error: ")
	if len(w.pieces) > 0 && w.pieces[0].part == nil {
		w.pieces[0].before = append(mark, w.pieces[0].before...)
		return
	}
	w.pieces = append([]piece{{text: mark}}, w.pieces...)
}

// content writes the pieces: one text, or none, as a string.
func (w *callWriter) content() {
	switch {
	case len(w.pieces) == 0:
		w.write(`""`)
		return
	case len(w.pieces) == 1 && w.pieces[0].part == nil:
		w.piece(w.pieces[0])
		return
	}
	w.write("[")
	for _, p := range w.pieces {
		w.element()
		if p.part != nil {
			w.media(p.part)
			continue
		}
		w.write(`{"type":"text","text":`)
		w.piece(p)
		w.write("}")
	}
	w.write("]")
}

func (w *callWriter) piece(p piece) {
	w.write(`"`)
	w.dst = append(append(w.dst, p.before...), p.text...)
	w.write(`"`)
}

// media writes a part that is an image, a sound, a video or a file.
func (w *callWriter) media(p *canon.Part) {
	m := &p.Media
	switch p.Type {
	case canon.ImagePart:
		w.write(`{"type":"image_url","image_url":{`)
		w.address(p, "image/png")
		w.detail(p)
	case canon.VideoPart:
		w.write(`{"type":"video_url","video_url":{`)
		w.address(p, "video/mp4")
	case canon.AudioPart:
		if m.Data == nil {
			w.write(`{"type":"audio_url","audio_url":{`)
			w.address(p, "")
			break
		}
		w.write(`{"type":"input_audio","input_audio":{`)
		w.textMember("data", m.Data)
		format := m.Format
		if format == nil && !w.same {
			format = audioFormat(m.MediaType)
		}
		w.textMember("format", format)
	case canon.FilePart:
		w.write(`{"type":"file","file":{`)
		w.fileBody(p)
	}
	w.write("}")
	if w.same {
		w.rawMember("cache_control", p.Cache)
		w.extra(p.Extra, p.Path)
	}
	w.write("}")
}

// address writes the url, which data has too.
func (w *callWriter) address(p *canon.Part, mediaType string) {
	m := &p.Media
	switch {
	case m.URL != nil:
		w.textMember("url", m.URL)
	case m.Data != nil:
		w.member("url")
		w.dataURL(m, mediaType)
	default:
		w.fail(canon.Unsupported(p.Path, "the upstream cannot fetch what the provider keeps: "+mediaWord(p)+" by file id"))
	}
}

func (w *callWriter) dataURL(m *canon.Media, mediaType string) {
	w.write(`"data:`)
	if m.MediaType != nil {
		w.dst = append(w.dst, m.MediaType...)
	} else {
		w.write(mediaType)
	}
	w.write(";base64,")
	w.dst = append(append(w.dst, m.Data...), '"')
}

// detail: what Responses calls original is more than Chat can ask for.
func (w *callWriter) detail(p *canon.Part) {
	d := p.Media.Detail
	switch {
	case w.same:
	case d == nil:
		d = canon.Text("auto")
	case string(d) == "original":
		d = canon.Text("high")
		w.lose(p.Path, "detail", canon.NoEquivalent)
	}
	w.textMember("detail", d)
}

func (w *callWriter) fileBody(p *canon.Part) {
	m := &p.Media
	title := m.Title
	if title == nil && !w.same && m.FileID == nil { // the official API requires one
		if title = canon.Text("document"); string(m.MediaType) == "application/pdf" {
			title = canon.Text("document.pdf")
		}
	}
	switch {
	case m.FileID != nil && w.r.From != canon.Messages:
		w.textMember("file_id", m.FileID)
	case m.URL != nil:
		w.textMember("file_data", m.URL)
	case m.Data != nil && w.same:
		w.textMember("file_data", m.Data)
	case m.Data != nil:
		w.member("file_data")
		w.dataURL(m, "application/octet-stream")
	default:
		w.fail(canon.Unsupported(p.Path, "the upstream cannot fetch what the provider keeps: file by file id"))
	}
	w.textMember("filename", title)
}

// marks says what beside its content a part loses.
func (w *callWriter) marks(p *canon.Part) {
	if p.Cache != nil {
		w.lose(p.Path, "cache_control", canon.NoEquivalent)
	}
	if len(p.Cites) > 0 {
		what := "annotations"
		if w.r.From == canon.Messages {
			what = "citations"
		}
		w.lose(p.Path, what, canon.NoEquivalent)
	}
	if p.Type == canon.ReasoningPart && p.Signature != nil {
		w.lose(p.Path, w.r.From.Called("encrypted_content"), canon.Foreign)
	}
	w.extra(p.Extra, p.Path)
}

// loseKind says that a whole part is lost.
func (w *callWriter) loseKind(p *canon.Part) {
	switch p.Type {
	case canon.RedactedPart:
		what := "encrypted_content"
		if w.r.From == canon.Messages {
			what = "redacted_thinking"
		}
		w.lose(p.Path, what, canon.Foreign)
	case canon.ReferencePart:
		w.lose(p.Path, "item_reference", canon.Foreign)
	case canon.UnknownPart, canon.HostedPart:
		why := canon.NotKnown
		if p.Type == canon.HostedPart {
			why = canon.NoEquivalent
		}
		what, ok := jsonx.Text(jsonx.Get(p.Raw, "type"))
		if !ok {
			what = "part"
		}
		w.lose(p.Path, what, why)
	default:
		w.lose(p.Path, mediaWord(p), canon.NoEquivalent)
	}
}

func mediaWord(p *canon.Part) string {
	switch p.Type {
	case canon.ImagePart:
		return "image"
	case canon.AudioPart:
		return "audio"
	case canon.VideoPart:
		return "video"
	case canon.FilePart:
		return "file"
	case canon.ReasoningPart:
		return "reasoning"
	case canon.CallPart:
		return "call"
	case canon.ResultPart:
		return "result"
	}
	return "part"
}

// movedName is how a result and the user message behind it name the same thing.
func movedName(p *canon.Part, i int) string {
	return "[" + mediaWord(p) + " " + strconv.Itoa(i+1) + "]"
}

// audioFormat is OpenAI's word for a media type.
func audioFormat(mediaType canon.Text) canon.Text {
	_, format, _ := bytes.Cut(mediaType, []byte("/"))
	switch string(format) {
	case "mpeg":
		return canon.Text("mp3")
	case "x-wav", "wave", "":
		return canon.Text("wav")
	}
	return format
}
