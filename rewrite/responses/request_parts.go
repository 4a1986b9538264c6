package responses

import (
	"bytes"

	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
)

// partRoom gives memory for parts, many at a time: a part is large, and most messages have one or two.
type partRoom struct{ used []canon.Part }

// add makes parts longer by one that is empty. It moves them only when they are not what was made last, or there is no room behind them.
func (room *partRoom) add(parts []canon.Part) []canon.Part {
	n, end := len(parts), len(room.used)
	if end == cap(room.used) || n > 0 && (n > end || &room.used[end-1] != &parts[n-1]) {
		room.used = make([]canon.Part, 0, max(2*n, min(64, 2*cap(room.used)), 4))
		room.used = append(room.used, parts...)
		end = n
	}
	room.used = room.used[:end+1]
	return room.used[end-n : end+1 : end+1]
}

// content reads a string, which is plain, or a list of parts, and puts them behind those that are there. All get the id of the item that
// they are in.
func (r *callReader) content(parts []canon.Part, raw canon.Raw, path string, id canon.Text) (_ []canon.Part, plain bool, err error) {
	switch jsonx.KindOf(raw) {
	case jsonx.KindString:
		parts = r.parts.add(parts)
		p := &parts[len(parts)-1]
		p.Type, p.ItemID, p.Raw, p.Path = canon.TextPart, id, raw, path
		p.Text, _ = jsonx.Interior(raw)
		return parts, true, nil
	case jsonx.KindArray:
	default:
		return nil, false, canon.Invalid(path, "must be a string or a list of parts")
	}
	for i, it := 0, jsonx.Array(raw); it.Next(); i++ {
		parts = r.parts.add(parts)
		p := &parts[len(parts)-1]
		p.ItemID, p.Raw, p.Path = id, it.Value(), canon.At(path, i)
		if err := r.part(p); err != nil {
			return nil, false, err
		}
	}
	return parts, false, nil
}

// part reads p.Raw. Besides the types of messages here (wire.md 3.2.2) it knows Chat's image_url and video_url, whose members are the same.
func (r *callReader) part(p *canon.Part) error {
	if jsonx.KindOf(p.Raw) != jsonx.KindObject {
		return canon.Invalid(p.Path, "must be an object")
	}
	m := r.levels.part.read(p.Raw)
	kind, err := m.text(p.Path, "type")
	if err != nil {
		return err
	}
	word := string(jsonx.Unquoted(kind))
	if word == "" && m.has("text") {
		word = "text"
	}
	switch word {
	case "":
		return canon.Invalid(p.Path+".type", "is missing")
	case "input_text", "output_text", "text":
		p.Type = canon.TextPart
		err = readWords(p, m, "text")
	case "reasoning_text":
		p.Type = canon.ReasoningPart
		err = readWords(p, m, "text")
	case "refusal":
		p.Type = canon.RefusalPart
		err = readWords(p, m, "refusal")
	case "input_image", "image_url":
		err = r.image(p, m)
	case "input_file":
		err = readFile(p, m)
	case "input_audio":
		err = r.audio(p, m)
	case "input_video", "video_url":
		err = r.video(p, m)
	default:
		p.Type = canon.UnknownPart
		return nil
	}
	if err != nil {
		return err
	}
	p.Cache = m.take("cache_control")
	p.Extra = m.rest()
	return nil
}

// readWords reads a part that is text: {"text":…,"annotations":[…],"logprobs":[…]}. Logprobs of what was said before mean nothing to a model.
func readWords(p *canon.Part, m *members, name string) error {
	raw, err := m.takeOf(jsonx.KindString, p.Path, name)
	if err != nil {
		return err
	}
	if raw == nil {
		return canon.Invalid(inside(p.Path, name), "is missing")
	}
	p.Text, _ = jsonx.Interior(raw)
	m.take("logprobs")
	annotations, err := m.takeOf(jsonx.KindArray, p.Path, "annotations")
	for it := jsonx.Array(annotations); it.Next(); {
		p.Cites = append(p.Cites, it.Value())
	}
	return err
}

// image reads {"image_url":"…" or {"url":…,"detail":…},"file_id":…,"detail":…}; what is behind the first of them stays for Extra.
func (r *callReader) image(p *canon.Part, m *members) (err error) {
	p.Type = canon.ImagePart
	if p.Media.URL, p.Media.Detail, err = r.url(m, p.Path, "image_url"); err != nil {
		return err
	}
	if p.Media.URL == nil {
		if p.Media.FileID, err = m.text(p.Path, "file_id"); err != nil {
			return err
		}
		if len(p.Media.FileID) == 0 {
			return canon.Invalid(p.Path+".image_url", "is missing")
		}
	}
	detail, err := m.text(p.Path, "detail")
	if detail != nil {
		p.Media.Detail = detail
	}
	return err
}

// readFile reads {"file_data":"data:…" or base64,"file_url":…,"file_id":…,"filename":…}.
func readFile(p *canon.Part, m *members) (err error) {
	p.Type = canon.FilePart
	f := &p.Media
	if f.Title, err = m.text(p.Path, "filename"); err != nil {
		return err
	}
	data, err := m.text(p.Path, "file_data")
	switch {
	case err != nil:
		return err
	case len(data) > 0 && bytes.HasPrefix(data, []byte("data:")):
		f.URL = data
		return nil
	case len(data) > 0:
		f.Data = data
		return nil
	}
	if f.URL, err = m.text(p.Path, "file_url"); err != nil || f.URL != nil {
		return err
	}
	f.FileID, err = m.text(p.Path, "file_id")
	if err == nil && len(f.FileID) == 0 {
		err = canon.Invalid(p.Path+".file_data", "is missing, and file_url and file_id are too")
	}
	return err
}

// audio reads {"input_audio":{"data":base64,"format":"wav"}}.
func (r *callReader) audio(p *canon.Part, m *members) error {
	p.Type = canon.AudioPart
	raw, err := m.takeOf(jsonx.KindObject, p.Path, "input_audio")
	if err != nil {
		return err
	}
	path := p.Path + ".input_audio"
	if raw == nil {
		return canon.Invalid(path, "is missing")
	}
	inner := r.levels.inner.read(raw)
	if p.Media.Data, err = inner.needed(path, "data"); err != nil {
		return err
	}
	p.Media.Format, err = inner.text(path, "format")
	return err
}

// video reads {"video_url":"…" or {"url":…}}, or "video" in its place: an extension for open models (dialects.md 1.3.3).
func (r *callReader) video(p *canon.Part, m *members) (err error) {
	p.Type = canon.VideoPart
	for _, name := range []string{"video_url", "video"} {
		if p.Media.URL, _, err = r.url(m, p.Path, name); err != nil || p.Media.URL != nil {
			return err
		}
	}
	return canon.Invalid(p.Path+".video_url", "is missing")
}

// url reads a URL, as it is or in an object; nil when there is none.
func (r *callReader) url(m *members, path, name string) (url, detail canon.Text, err error) {
	raw := m.take(name)
	switch jsonx.KindOf(raw) {
	case jsonx.KindInvalid:
		return nil, nil, nil
	case jsonx.KindString:
		url, _ = jsonx.Interior(raw)
	case jsonx.KindObject:
		inner := r.levels.inner.read(raw)
		if url, err = inner.text(inside(path, name), "url"); err != nil {
			return nil, nil, err
		}
		if detail, err = inner.text(inside(path, name), "detail"); err != nil {
			return nil, nil, err
		}
	}
	if len(url) == 0 {
		return nil, nil, canon.Invalid(inside(path, name), "must be a URL")
	}
	return url, detail, nil
}
