package extract_test

import (
	"bytes"
	"encoding/binary"
	"testing"
	"time"

	"turnstone/providers/extract"
	"turnstone/providers/extract/extracttest"
)

// TestContentsAreRead reads what no file has, because a service refuses it, and what it reads as another type. The other
// contents are files in tests/e2e.
func TestContentsAreRead(t *testing.T) {
	e := extract.NewWithTimeout(time.Minute, command("read")...) // also on a busy host computer
	for _, r := range extracttest.Rows() {
		if _, isOther := r.Uploaded(); !isOther {
			continue
		}
		t.Run(r.Name, func(t *testing.T) {
			t.Parallel()
			x, err := readWith(t, e, r.Content, r.MediaType)
			if err != nil {
				t.Fatal(err)
			}
			if got := extracttest.Summary(x); got != r.Want {
				t.Errorf("got  %s\nwant %s", got, r.Want)
			}
			encrypted, err := e.Encrypted(t.Context(), opened(r.Content), r.MediaType)
			if err != nil || encrypted != (r.Want == `failed encrypted`) {
				t.Errorf("encrypted: %t, %v", encrypted, err)
			}
		})
	}
}

func TestTheLimitsOfTheCorpusAreThose(t *testing.T) {
	if extract.MaxText != extracttest.MaxText || extract.MaxBlocks != extracttest.MaxBlocks {
		t.Error("the corpus has other limits of texts")
	}
}

func TestARenditionIsSmallAndHasNothingOfTheOriginalButItsPixels(t *testing.T) {
	e := extract.NewWithTimeout(time.Minute, command("read")...)
	for name, c := range map[string]struct{ mediaType, content string }{
		"a JPEG with metadata": {"image/jpeg", extracttest.Turned(extracttest.PictureOf("jpeg", extracttest.Quarters(40, 30)), 1, binary.BigEndian)},
		"noise":                {"image/png", extracttest.PictureOf("png", extracttest.Noise(1600, 900, false))},
		"transparent noise":    {"image/png", extracttest.PictureOf("png", extracttest.Noise(1600, 900, true))},
		"a small picture":      {"image/png", extracttest.PictureOf("png", extracttest.Noise(3, 2, true))},
	} {
		x, err := readWith(t, e, c.content, c.mediaType)
		if err != nil {
			t.Fatal(err)
		}
		for limit, raw := range map[int][]byte{extract.MaxThumbnail: x.Thumbnail, extract.MaxPicture: x.Picture} {
			if len(raw) == 0 || len(raw) > limit || bytes.Equal(raw, []byte(c.content)) || bytes.Contains(raw, []byte("Exif")) || bytes.Contains(raw, []byte("GPS")) {
				t.Errorf("%s: %d bytes: %.50q", name, len(raw), raw)
			}
		}
	}
}
