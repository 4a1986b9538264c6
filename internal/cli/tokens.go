package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"strconv"

	"rolltap/capture/training"
	"rolltap/internal/jsonx"
)

// tokens prints the token ids of a rollout.
func (s *Show) tokens(c *Console) error {
	snap, err := training.Peek(s.Store, s.Rollout)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("no tokens of rollout %s in %s: were its calls under /training-token-capture, and is --token-capture on?", s.Rollout, s.Store)
	}
	if err != nil {
		return err
	}
	defer snap.Close()
	if s.JSON {
		return snap.WriteJSON(c.Out)
	}
	chains, err := snap.Chains()
	if err != nil {
		return err
	}
	rows := [][]cell{heads(">call", "id", "parent", ">prompt", ">stored", ">generated", ">mean logprob", "weights")}
	number := map[string]int{}
	var damaged, generated int64
	for entries := snap.Entries(); ; {
		v, err := entries.Next()
		if err == io.EOF {
			break
		}
		if d := (*training.Damage)(nil); errors.As(err, &d) {
			damaged++
			continue
		}
		if err != nil {
			return err
		}
		number[v.CallID] = len(rows)
		generated += v.Generation.Count
		row, err := tokenRow(len(rows), v, number, snap.File(), chains)
		if err != nil {
			return err
		}
		rows = append(rows, row)
	}
	if err := c.table(c.Out, rows); err != nil {
		return err
	}
	text := fmt.Sprintf("\n%s, %s generated", plural(int64(len(rows)-1), "call"), plural(generated, "token"))
	if snap.ID != "" {
		text += ", frozen"
	}
	text = c.paint(dim, text)
	if damaged > 0 {
		text += c.paint(red, ", "+plural(damaged, "damaged line"))
	}
	if snap.Incomplete {
		text += c.paint(red, ", incomplete: a trainer leaves it out, or a call is in flight")
	}
	if _, err := fmt.Fprintln(c.Out, text); err != nil {
		return err
	}
	for _, m := range snap.Marks {
		if _, err := fmt.Fprintln(c.Out, c.paint(red, inertLine("  "+m.Reason+"  "+m.CallID))); err != nil {
			return err
		}
	}
	return nil
}

// tokenRow is the row of one entry.
func tokenRow(n int, v *training.View, number map[string]int, f io.ReaderAt, chains *training.Chains) ([]cell, error) {
	parent := cell{text: string(v.Parent)}
	switch v.Parent {
	case training.Resolved:
		parent.text = "call " + strconv.Itoa(number[v.ParentCallID])
		if number[v.ParentCallID] == 0 {
			parent.text = inertLine(v.ParentCallID)
		}
	case training.Unresolved:
		parent = cell{text: inertLine("unresolved: " + v.ParentReason), style: yellow}
	case training.Undecided:
		parent = cell{text: "undecided", style: yellow}
	}
	prompt := cell{text: "?", style: red, right: true}
	whole, err := chains.PromptLen(v)
	if err == nil {
		prompt = cell{text: strconv.FormatInt(whole, 10), right: true}
	} else if !errors.Is(err, training.ErrChain) {
		return nil, err
	}
	mean := "-"
	if sum, ok := sumOf(v.LogProbs, f); ok && v.LogProbs.Count > 0 {
		mean = strconv.FormatFloat(sum/float64(v.LogProbs.Count), 'f', 4, 64)
	}
	return []cell{
		{text: strconv.Itoa(n), right: true, style: bold}, {text: inertLine(v.CallID)}, parent, prompt,
		{text: strconv.FormatInt(v.Prompt.Count, 10), right: true}, {text: strconv.FormatInt(v.Generation.Count, 10), right: true},
		{text: mean, right: true}, weightsOf(v, f),
	}, nil
}

func sumOf(s training.Span, f io.ReaderAt) (sum float64, ok bool) {
	numbers := s.Numbers(f)
	for numbers.Next() {
		x, err := strconv.ParseFloat(string(numbers.Text()), 64)
		if err != nil {
			return 0, false
		}
		sum += x
	}
	return sum, numbers.Err() == nil && !math.IsInf(sum, 0)
}

// weightsOf is the version of the weights that a call was generated with.
func weightsOf(v *training.View, f io.ReaderAt) cell {
	const most = 64 << 10
	if v.Rolltap.Size == 0 || v.Rolltap.Size > most {
		return cell{text: "-"}
	}
	facts, err := io.ReadAll(v.Rolltap.Open(f))
	if err != nil || !jsonx.Valid(facts) {
		return cell{text: "-"}
	}
	w := jsonx.Get(facts, "weights")
	start, _ := jsonx.Text(jsonx.Get(w, "start"))
	end, _ := jsonx.Text(jsonx.Get(w, "end"))
	switch {
	case start == "":
		return cell{text: "-"}
	case start != end:
		return cell{text: inertLine(start + " → " + end), style: red}
	}
	return cell{text: inertLine(start)}
}
