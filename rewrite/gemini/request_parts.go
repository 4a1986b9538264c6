package gemini

import (
	"bytes"
	"strings"

	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
	"rolltap/rewrite/fold"
)

// part is a part of a content, and what beside it is not its own.
type part struct {
	canon.Part
	thought   bool
	signature canon.Text // of the reasoning in front of it
	name      canon.Text // of the function that a result is of
}

// part reads one of {"text"}, {"inlineData"}, {"fileData"}, {"functionCall"}, {"functionResponse"}, and what Google's own tools do. Beside it may
// be thought and thoughtSignature. A part that says nothing has no type.
func (in *callReader) part(raw []byte, path string) part {
	p := part{Part: canon.Part{Raw: raw, Path: path}}
	if in.of(jsonx.KindObject, raw, path) == nil {
		return p
	}
	kinds := 0
	for it := jsonx.Object(raw); it.Next(); {
		value := it.Value()
		if jsonx.IsNull(value) {
			continue
		}
		word := string(camel(it.Key()))
		at := path + "." + word
		kinds++
		switch word {
		case "text":
			p.Type, p.Text = canon.TextPart, in.text(value, at)
		case "inlineData":
			in.inline(&p.Part, value, at)
		case "fileData":
			in.file(&p.Part, value, at)
		case "functionCall":
			in.call(&p.Part, value, at)
		case "functionResponse":
			in.result(&p, value, at)
		case "executableCode", "codeExecutionResult", "toolCall", "toolResponse":
			p.Type = canon.HostedPart
		case "thought":
			kinds--
			p.thought = in.flag(value, at)
		case "thoughtSignature":
			kinds--
			if text := in.text(value, at); len(text) > 0 && !dummy(text) {
				p.signature = readSignature(text)
			}
		default: // videoMetadata, mediaResolution, partMetadata and what is new
			kinds--
			p.Extra = append(p.Extra, canon.Member{Name: fold.Name(it.Key()), Value: value, Path: path})
		}
	}
	if kinds > 1 {
		in.fail(path, "must have one kind of data")
	}
	if p.Type == 0 && p.Extra != nil {
		p.Type, p.Extra = canon.UnknownPart, nil
	}
	p.thought = p.thought && (p.Type == canon.TextPart || p.Type == 0)
	return p
}

// dummy tells what clients write where the API wants a signature and they have none; it signs nothing.
func dummy(signature canon.Text) bool {
	switch string(fold.Name(signature)) {
	case "skip_thought_signature_validator", "context_engineering_is_the_way_to_go":
		return true
	}
	return false
}

// call reads {"id", "name", "args"}.
func (in *callReader) call(p *canon.Part, raw []byte, path string) {
	p.Type = canon.CallPart
	in.of(jsonx.KindObject, raw, path)
	p.Call.Arguments = canon.Text("{}")
	for it := jsonx.Object(raw); it.Next(); {
		value := it.Value()
		if jsonx.IsNull(value) {
			continue
		}
		switch word := string(camel(it.Key())); word {
		case "id":
			if id := in.text(value, path+".id"); len(id) > 0 {
				p.Call.ID = id
			}
		case "name":
			p.Call.Name = in.text(value, path+".name")
		case "args":
			if in.of(jsonx.KindObject, value, path+".args") != nil {
				p.Call.Arguments = in.make(func(dst []byte) []byte { return jsonx.AppendEscaped(dst, value) })
			}
		default:
			p.Extra = append(p.Extra, canon.Member{Name: fold.Name(it.Key()), Value: value, Path: path})
		}
	}
	if len(p.Call.Name) == 0 {
		in.fail(path+".name", "is missing")
	}
}

// result reads {"id", "name", "response", "parts"}.
func (in *callReader) result(p *part, raw []byte, path string) {
	p.Type = canon.ResultPart
	in.of(jsonx.KindObject, raw, path)
	r := &p.Result
	var inner []byte
	for it := jsonx.Object(raw); it.Next(); {
		value := it.Value()
		if jsonx.IsNull(value) {
			continue
		}
		switch word := string(camel(it.Key())); word {
		case "id":
			if id := in.text(value, path+".id"); len(id) > 0 {
				r.CallID = id
			}
		case "name":
			p.name = in.text(value, path+".name")
		case "response":
			in.response(r, value, path+".response")
		case "parts":
			inner = in.of(jsonx.KindArray, value, path+".parts")
		default: // willContinue, scheduling
			p.Extra = append(p.Extra, canon.Member{Name: fold.Name(it.Key()), Value: value, Path: path})
		}
	}
	i := 0
	for it := jsonx.Array(inner); it.Next() && in.bad == nil; i++ {
		q := in.part(it.Value(), canon.At(path+".parts", i))
		switch q.Type {
		case 0:
		case canon.CallPart, canon.ResultPart:
			in.fail(q.Path, "has no place in a functionResponse")
		default:
			r.Parts = append(r.Parts, q.Part)
		}
	}
	if len(r.Parts) == 0 {
		r.Parts = []canon.Part{{Type: canon.TextPart, Text: canon.Text{}, Path: path}}
	}
	r.Plain = len(r.Parts) == 1 && r.Parts[0].Type == canon.TextPart
}

// response reads what a function said. Its member output is that, or its member error; where it has neither, it is all of it. What is no text is
// told as JSON.
func (in *callReader) response(r *canon.Result, raw []byte, path string) {
	if in.of(jsonx.KindObject, raw, path) == nil {
		return
	}
	said := raw
	members := 0
	for it := jsonx.Object(raw); it.Next(); members++ {
		switch word := string(fold.Name(it.Key())); {
		case members > 0:
			said, r.Failed = raw, false
		case word == "output":
			said = it.Value()
		case word == "error" && !jsonx.IsNull(it.Value()):
			said, r.Failed = it.Value(), true
		}
	}
	if members == 0 {
		said = []byte(`""`)
	}
	text, ok := jsonx.Interior(said)
	if !ok {
		text = in.make(func(dst []byte) []byte { return jsonx.AppendEscaped(dst, said) })
	}
	r.Parts = append(r.Parts, canon.Part{Type: canon.TextPart, Text: text, Path: path})
}

// inline reads {"mimeType", "data", "displayName"}.
func (in *callReader) inline(p *canon.Part, raw []byte, path string) {
	m := &p.Media
	in.media(p, raw, path, "data", func(value []byte, at string) { m.Data = in.base64Text(value, at) })
	if m.MediaType == nil || m.Data == nil {
		in.fail(path, "must have mimeType and data")
	}
	p.Type = mediaPart(m.MediaType)
}

// media reads {"mimeType", "displayName"} and the member that has the content, or says where it is.
func (in *callReader) media(p *canon.Part, raw []byte, path, content string, take func(value []byte, at string)) {
	in.of(jsonx.KindObject, raw, path)
	for it := jsonx.Object(raw); it.Next(); {
		value := it.Value()
		if jsonx.IsNull(value) {
			continue
		}
		switch word := string(camel(it.Key())); word {
		case "mimeType":
			p.Media.MediaType = in.text(value, path+".mimeType")
		case content:
			take(value, path+"."+content)
		case "displayName":
			p.Media.Title = in.text(value, path+".displayName")
		default:
			p.Extra = append(p.Extra, canon.Member{Name: fold.Name(it.Key()), Value: value, Path: path})
		}
	}
}

// file reads {"mimeType", "fileUri", "displayName"}. What is in Google's store can only be read by Google.
func (in *callReader) file(p *canon.Part, raw []byte, path string) {
	m := &p.Media
	in.media(p, raw, path, "fileUri", func(value []byte, at string) { m.URL = in.text(value, at) })
	switch uri := strings.ToLower(string(jsonx.Unquoted(m.URL))); {
	case uri == "":
		in.fail(path+".fileUri", "is missing")
	case !strings.HasPrefix(uri, "http://") && !strings.HasPrefix(uri, "https://"), strings.HasPrefix(uri, "https://generativelanguage.googleapis.com/"):
		in.refuse(path+".fileUri", "only http and https addresses outside of Google's file store can be read here")
	}
	if p.Type = mediaPart(m.MediaType); m.MediaType == nil {
		p.Type = mediaPart(typeOfName(m.URL))
	}
}

// mediaPart is the part that a media type is.
func mediaPart(mediaType canon.Text) canon.PartType {
	switch kind, _, _ := bytes.Cut(bytes.ToLower(jsonx.Unquoted(mediaType)), []byte("/")); string(kind) {
	case "image":
		return canon.ImagePart
	case "audio":
		return canon.AudioPart
	case "video":
		return canon.VideoPart
	}
	return canon.FilePart
}

// typeOfName guesses by how an address ends.
func typeOfName(url canon.Text) canon.Text {
	path, _, _ := strings.Cut(strings.ToLower(string(jsonx.Unquoted(url))), "?")
	path, _, _ = strings.Cut(path, "#")
	switch path[strings.LastIndexByte(path, '.')+1:] {
	case "png", "jpg", "jpeg", "gif", "webp", "heic", "heif", "bmp":
		return canon.Text("image/*")
	case "mp3", "wav", "ogg", "flac", "aac", "aiff", "m4a":
		return canon.Text("audio/*")
	case "mp4", "mpeg", "mov", "avi", "webm", "mpg", "wmv", "3gp":
		return canon.Text("video/*")
	}
	return nil
}
