package training_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"

	"rolltap/capture/training"
)

// A call leaves an intent before it is sent, and its tokens behind its answer. Who collects them freezes the rollout, reads it and drops it.
func Example() {
	dir, err := os.MkdirTemp("", "training-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	s, err := training.Open(training.Options{Dir: dir})
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	defer s.Close(ctx)

	if err := s.Begin(ctx, "task-1", "call-1"); err != nil {
		log.Fatal(err) // do not send it
	}
	e := &training.Entry{
		Rollout: "task-1", CallID: "call-1", PromptTokenIDs: []byte("[1,2,3]"), GenerationTokenIDs: []byte("[10,11]"),
		GenerationLogProbs: []byte("[-0.5,-1]"), TokenItem: training.NoItem, Parent: training.Root,
	}
	if err := e.Stamp(); err != nil {
		log.Fatal(err)
	}
	if err := s.Put(ctx, e); err != nil {
		log.Fatal(err)
	}

	snap, err := s.Freeze(ctx, "task-1")
	if err != nil {
		log.Fatal(err)
	}
	defer snap.Close()
	for r := snap.Entries(); ; {
		v, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			log.Fatal(err)
		}
		ids, err := io.ReadAll(v.Generation.Open(snap.File()))
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s generated %s\n", v.CallID, ids)
	}
	dropped, err := s.Drop(ctx, "task-1", snap.ID, snap.Version)
	fmt.Println(snap.Incomplete, snap.Version, dropped, err)
	// Output:
	// call-1 generated [10,11]
	// false 2 true <nil>
}
