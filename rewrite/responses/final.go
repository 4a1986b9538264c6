package responses

import "rolltap/internal/jsonx"

// final is an item of the final response, and what events told of it.
type final struct {
	raw            []byte
	kind, id, call string
	it             *arriving
}

// itemNames are the type of an item and what it may be known by.
func itemNames(item []byte) (kind, id, call string) {
	kind, _ = jsonx.Text(jsonx.Get(item, "type"))
	id, _ = jsonx.Text(jsonx.Get(item, "id"))
	call, _ = jsonx.Text(jsonx.Get(item, "call_id"))
	return kind, id, call
}

// finals finds for each item of the final output the one that events told of, so that none is told twice. The output_index of events need not
// be the place in the output: some servers count from 1, or leave places out. So items are known by their ids first; where ids differ, as older
// vLLM makes them, by their place and type; then by their type in order. What is left nobody has told.
func (d *decoder) finals(output []byte) []final {
	var all []final
	for items := jsonx.Array(output); items.Next(); {
		f := final{raw: items.Value()}
		f.kind, f.id, f.call = itemNames(f.raw)
		all = append(all, f)
	}
	for i := range all {
		f := &all[i]
		for _, it := range [...]*arriving{d.items[int64(i)], d.named[f.id], d.named[f.call]} {
			if it != nil && (f.id != "" && f.id == it.id || f.call != "" && f.call == it.call) {
				f.take(it)
			}
		}
	}
	for i := range all {
		if it := d.items[int64(i)]; it != nil && it.kind == all[i].kind {
			all[i].take(it)
		}
	}
	left := map[string][]*arriving{}
	for _, it := range d.order {
		if !it.final {
			left[it.kind] = append(left[it.kind], it)
		}
	}
	for i := range all {
		f := &all[i]
		if its := left[f.kind]; f.it == nil && len(its) > 0 {
			f.take(its[0])
			left[f.kind] = its[1:]
		}
		if f.it == nil {
			f.it = &arriving{index: int64(i), kind: f.kind}
		}
	}
	return all
}

// take makes one of what events told this item, unless either has been found.
func (f *final) take(it *arriving) {
	if f.it == nil && !it.final {
		f.it, it.final = it, true
	}
}
