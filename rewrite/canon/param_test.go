package canon

import "testing"

func TestEveryParameterHasANameOfItsOwn(t *testing.T) {
	seen := map[string]Param{}
	for p := range NumParams {
		name := p.String()
		if before, twice := seen[name]; twice || name == NumParams.String() {
			t.Errorf("parameter %d is called %q, as %d is", p, name, before)
		}
		seen[name] = p
	}
}

func TestAtIsThePathOfAnElement(t *testing.T) {
	if got := At("tools[1].tools", 12); got != "tools[1].tools[12]" {
		t.Error(got)
	}
}
