package chat

import (
	"bytes"

	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
)

// part reads an element of a content list: the official ones, vLLM's video_url and audio_url (dialects.md 1.5, 4.5), and a bare string,
// which vLLM takes too.
func (in *callReader) part(p *canon.Part, v []byte, path string) {
	p.Raw, p.Path = v, path
	if jsonx.KindOf(v) == jsonx.KindString {
		p.Type, p.Text = canon.TextPart, in.text(v, path)
		return
	}
	if jsonx.KindOf(v) != jsonx.KindObject {
		in.fail(path, "must be an object")
		return
	}
	kind := jsonx.Unquoted(in.text(jsonx.Get(v, "type"), path+".type"))
	for it := jsonx.Object(v); it.Next(); {
		v := it.Value()
		if jsonx.IsNull(v) {
			continue
		}
		switch name := jsonx.Unquoted(it.Key()); {
		case string(name) == "type":
		case bytes.Equal(name, kind) && in.body(p, kind, v):
		case string(name) == "cache_control":
			p.Cache = v
		case string(name) == "annotations" && string(kind) == "text":
			p.Cites = cites(v)
		default:
			p.Extra = append(p.Extra, canon.Member{Name: it.Key(), Value: v})
		}
	}
	if p.Type != 0 {
		return
	}
	switch string(kind) {
	case "text", "refusal", "image_url", "video_url", "audio_url", "input_audio", "file":
		in.fail(path+"."+string(kind), "is missing")
	}
	*p = canon.Part{Type: canon.UnknownPart, Raw: v, Path: path}
}

// body reads the member that is named as the part's type and holds what the part is about.
func (in *callReader) body(p *canon.Part, kind, v []byte) bool {
	switch string(kind) {
	case "text":
		p.Type, p.Text = canon.TextPart, in.text(v, p.Path+".text")
	case "refusal":
		p.Type, p.Text = canon.RefusalPart, in.text(v, p.Path+".refusal")
	case "image_url":
		p.Type = canon.ImagePart
		in.media(p, kind, v)
	case "video_url":
		p.Type = canon.VideoPart
		in.media(p, kind, v)
	case "audio_url", "input_audio":
		p.Type = canon.AudioPart
		in.media(p, kind, v)
	case "file":
		p.Type = canon.FilePart
		in.media(p, kind, v)
	default:
		return false
	}
	return true
}

// media reads {url, detail}, {data, format} or {file_id, file_data, filename}. A bare string is the url.
func (in *callReader) media(p *canon.Part, kind, v []byte) {
	m, path := &p.Media, p.Path+"."+string(kind)
	if jsonx.KindOf(v) == jsonx.KindString && string(kind) != "file" && string(kind) != "input_audio" {
		m.URL = in.text(v, path)
		return
	}
	for it := jsonx.Object(v); it.Next(); {
		v := it.Value()
		if jsonx.IsNull(v) {
			continue
		}
		name := string(jsonx.Unquoted(it.Key()))
		var to *canon.Text
		switch {
		case name == "url":
			to = &m.URL
		case name == "detail":
			to = &m.Detail
		case name == "data":
			to = &m.Data
		case name == "format":
			to = &m.Format
		case name == "file_id":
			to = &m.FileID
		case name == "filename":
			to = &m.Title
		case name == "file_data":
			if to = &m.Data; bytes.HasPrefix(v, []byte(`"data:`)) {
				to = &m.URL
			}
		default:
			in.o.Losses.Add(path+"."+name, canon.NotKnown)
			continue
		}
		*to = in.text(v, path+"."+name)
	}
	given := 0
	for _, t := range []canon.Text{m.URL, m.Data, m.FileID} {
		if t != nil {
			given++
		}
	}
	if given != 1 {
		in.fail(path, "must say in exactly one way where its content is")
	}
}

// cites takes annotations apart; there may be none in them, which is not the same as no list.
func cites(v []byte) []canon.Raw {
	if v == nil {
		return nil
	}
	list := []canon.Raw{}
	for it := jsonx.Array(v); it.Next(); {
		list = append(list, it.Value())
	}
	return list
}
