package cluster

import (
	"errors"
	"fmt"
	"testing"
)

func TestErrorsOfOneBatchAreOneSentence(t *testing.T) {
	tests := []struct {
		failing int
		want    string
	}{
		{0, ""},
		{1, "step 0 failed"},
		{3, "step 0 failed; step 1 failed; step 2 failed"},
		{5, "step 0 failed; step 1 failed; step 2 failed; and 2 more"},
	}
	for _, tt := range tests {
		err := together(6, func(i int) error {
			if i < tt.failing {
				return fmt.Errorf("step %d failed", i)
			}
			return nil
		})
		if text := fmt.Sprint(err); (err == nil) != (tt.want == "") || err != nil && text != tt.want {
			t.Errorf("%d failures: %q, want %q", tt.failing, text, tt.want)
		}
	}
}

func TestEachErrorOfABatchIsFound(t *testing.T) {
	err := together(3, func(i int) error {
		if i == 2 {
			return fmt.Errorf("create: %w", errDeleted)
		}
		return errors.New("something else")
	})
	if !errors.Is(err, errDeleted) {
		t.Errorf("%v doesn't tell that the cluster was deleted", err)
	}
}
