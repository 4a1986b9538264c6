package protocol

import "testing"

// TestRestoreTokens: what is decided for token files alone. Lines of records are in the model.
func TestRestoreTokens(t *testing.T) {
	for _, c := range []struct {
		name    string
		compare Finding
		search  Finding
		want    RestoreStep
	}{
		{"there, and closed", Finding{Whole: true, Fits: true, Closed: true}, Finding{}, InPlace},
		{"lost, and closed", Finding{Fits: true, Closed: true}, Finding{Closed: true}, InPlace},
		{"lost, elsewhere and closed", Finding{Fits: true, Closed: true}, Finding{Elsewhere: true, Closed: true}, Skip},
		{"displaced, and closed", Finding{Closed: true}, Finding{}, Skip},
		{"displaced", Finding{}, Finding{}, Append},
		{"withdrawn", Finding{Fits: true, Withdrawn: true}, Finding{}, Blank},
	} {
		r := Restore{}.Next(Finding{Same: true}).Next(c.compare)
		if r.Do == Search {
			r = r.Next(c.search)
		}
		if r.Do != c.want || !r.Ended() {
			t.Errorf("%s: %d, want %d", c.name, r.Do, c.want)
		}
	}
}

// TestWritten: a batch that somebody else writes is entered, or synced with its name, and goes no further than to the look at the name.
func TestWritten(t *testing.T) {
	crowd := Event{Saw: Done, Whole: true, Crowded: true}
	for _, c := range []struct {
		mode        Mode
		known, sure bool
		write       Event
		want        []Step
	}{
		{Journal, true, true, crowd, []Step{Write, Enter, LookName}},
		{Journal, true, true, Event{Saw: Done, Whole: true}, []Step{Write, SyncFile, LookName}},
		{Journal, true, false, crowd, []Step{Write, SyncFile, LookName}},
		{Journal, false, true, crowd, []Step{Write, SyncFile, SyncFolder, LookName}},
		{File, true, true, crowd, []Step{Write, SyncFile, LookName}},
	} {
		b := Written(c.mode, c.known, c.sure)
		for i, want := range c.want {
			if b.Do != want {
				t.Errorf("%+v: step %d is %d, want %d", c, i, b.Do, want)
			}
			b = b.Next(c.write)
		}
	}
	b := Written(Journal, false, true).Next(Event{Saw: Done}).Next(Event{Saw: Failed})
	if b.Do != Fail || !b.Doubt {
		t.Errorf("a sync that failed: %+v", b)
	}
}
