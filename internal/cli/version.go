package cli

import (
	"encoding/json"
	"fmt"
)

// Build says which program this is.
type Build struct {
	Version string `json:"version"`
	Commit  string `json:"commit"`
	Go      string `json:"go"`
}

// Version prints which program this is.
type Version struct {
	JSON bool `name:"json" env:"-" help:"Print one JSON object."`
}

// Run prints b.
func (v *Version) Run(c *Console, b Build) error {
	if v.JSON {
		return json.NewEncoder(c.Out).Encode(b)
	}
	_, err := fmt.Fprintf(c.Out, "rolltap %s\ncommit  %s\ngo      %s\n", b.Version, b.Commit, b.Go)
	return err
}
