package filesource_test

import (
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/headgate-io/headgate/source/filesource"
	"github.com/headgate-io/headgate/source/sourcetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConformance(t *testing.T) {
	t.Parallel()
	sourcetest.Run(t, sourcetest.Config{New: func(t testing.TB) sourcetest.Place {
		file := filepath.Join(t.TempDir(), "policy.yaml")
		return sourcetest.Place{
			Source: filesource.New(file),
			Put: func(data []byte) {
				if err := os.WriteFile(file, data, 0o600); err != nil {
					t.Fatal(err)
				}
			},
			Remove: func() {
				if err := os.Remove(file); err != nil {
					t.Fatal(err)
				}
			},
		}
	}})
}
