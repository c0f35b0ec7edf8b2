package extract_test

import (
	"image"
	"image/color"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/image/draw"
	"golang.org/x/image/font"
	"golang.org/x/image/font/inconsolata"
	"golang.org/x/image/math/fixed"

	"turnstone/providers/extract"
	"turnstone/providers/extract/extracttest"
)

// photo returns a picture of a page with lines of text, large enough to be recognized.
func photo(lines ...string) *image.RGBA {
	small := image.NewRGBA(image.Rect(0, 0, 40*8, 16*(len(lines)+2)))
	draw.Draw(small, small.Bounds(), image.White, image.Point{}, draw.Src)
	for i, line := range lines {
		d := font.Drawer{Dst: small, Src: image.Black, Face: inconsolata.Regular8x16, Dot: fixed.P(16, 16*(i+2))}
		d.DrawString(line)
	}
	const larger = 4
	page := image.NewRGBA(image.Rect(0, 0, larger*small.Bounds().Dx(), larger*small.Bounds().Dy()))
	draw.CatmullRom.Scale(page, page.Bounds(), small, small.Bounds(), draw.Src, nil)
	return page
}

// scan returns a PDF of pages that are pictures; nil: a page with the text "Tides".
func scan(pages ...image.Image) string {
	texts := make([]string, len(pages))
	for i, one := range pages {
		if one == nil {
			texts[i] = "Tides"
		}
	}
	of := extracttest.PDF("", texts...)
	for _, one := range pages {
		if one == nil {
			continue
		}
		width, height := one.Bounds().Dx(), one.Bounds().Dy()
		var gray strings.Builder
		for y := range height {
			for x := range width {
				const hex = "0123456789ABCDEF"
				value := color.GrayModel.Convert(one.At(x, y)).(color.Gray).Y
				gray.Write([]byte{hex[value>>4], hex[value&15]})
			}
		}
		stream := "q 500 0 0 " + strconv.Itoa(500*height/width) + " 50 500 cm BI /W " + strconv.Itoa(width) + " /H " + strconv.Itoa(height) + " /CS /G /BPC 8 /F /AHx ID " + gray.String() + "> EI Q"
		const empty = "BT /F 12 Tf 72 720 Td () Tj ET"
		old := "<< /Length " + strconv.Itoa(len(empty)) + " >>\nstream\n" + empty
		of = strings.Replace(of, old, "<< /Length "+strconv.Itoa(len(stream))+" >>\nstream\n"+stream, 1)
	}
	return strings.Split(of, "xref\n")[0] + "trailer\n<< /Root 1 0 R >>\n"
}

// fakeTesseract prints a table of words, and records its arguments.
const fakeTesseract = `if [ "$1" = --list-langs ]; then printf 'List of available languages (3):\neng\njpn\nosd\n'; exit; fi
row() { printf '5\t1\t%s\t1\t%s\t1\t0\t0\t9\t9\t%s\t%s\n' "$@"; }
printf 'level\tpage_num\n'; row 1 1 96.5 Low; row 1 1 91 water; row 1 2 20 noise; row 1 2 88 at; row 2 1 90 "$4"`

func readIn(t *testing.T, language, content, mediaType string) string {
	t.Helper()
	x, err := extract.New(command("read")...).ExtractIn(t.Context(), strings.NewReader(content), mediaType, language)
	if err != nil {
		t.Fatal(err)
	}
	return extracttest.Summary(x)
}

func TestTheTextOfScansAndPicturesIsRecognized(t *testing.T) {
	replaceProgram(t, "tesseract", fakeTesseract)
	page := extracttest.PictureOf("png", extracttest.Quarters(1200, 800))
	for _, c := range []struct{ name, language, mediaType, content, want string }{
		{"a scan", "en", "application/pdf", extracttest.OnePage(""), `done [recognized 1] jpeg 396x512 wwww of 1 page 1 "Low water\nat\n\neng\n"`},
		{"a page of a document is a scan", "ja", "application/pdf", extracttest.PDF("", "Tides", ""), `done [recognized 1] jpeg 396x512 wwww of 2 page 1 "Tides\n" page 2 "Low water\nat\n\njpn+eng\n"`},
		{"a document with text", "en", "application/pdf", extracttest.OnePage("Tides"), `done jpeg 396x512 wwww of 1 page 1 "Tides\n"`},
		{"a picture", "de-CH", "image/png", page, `done [recognized 1] 1200x800 jpeg 512x341 rgbw "Low water\nat\n\neng\n"`},
	} {
		if got := readIn(t, c.language, c.content, c.mediaType); got != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", c.name, got, c.want)
		}
	}
}

func TestAScanOfManyPagesIsRecognizedInPart(t *testing.T) {
	replaceProgram(t, "tesseract", fakeTesseract)
	got := readIn(t, "en", extracttest.PDF("", make([]string, extract.MaxRecognized+2)...), "application/pdf")
	if !strings.HasPrefix(got, "done [recognized 30] [pages_no_text 2]") {
		t.Error(got)
	}
}

func TestWhatIsNotRecognizedIsSaid(t *testing.T) {
	for name, c := range map[string]struct{ script, mediaType, content, want string }{
		"it fails":                   {`[ "$1" = --list-langs ] && printf 'x\neng\n' && exit; exit 1`, "application/pdf", extracttest.OnePage(""), `no_text no_text jpeg 395x512 wwww of 1`},
		"it has no languages":        {`exit 1`, "application/pdf", extracttest.OnePage(""), `no_text no_ocr jpeg 395x512 wwww of 1`},
		"it is not sure":             {strings.NewReplacer("96.5", "41", "91", "42", "88", "43", "90", "44").Replace(fakeTesseract), "image/png", extracttest.PictureOf("png", extracttest.Quarters(40, 20)), `none 40x20 jpeg 40x20 rgbw`},
		"it prints no table":         {`[ "$1" = --list-langs ] && printf 'x\neng\n' && exit; exec yes`, "image/png", extracttest.PictureOf("png", extracttest.Quarters(40, 20)), `none 40x20 jpeg 40x20 rgbw`},
		"the picture cannot be read": {fakeTesseract, "image/png", "x", `failed damaged`},
	} {
		t.Run(name, func(t *testing.T) {
			replaceProgram(t, "tesseract", c.script)
			if got := readIn(t, "en", c.content, c.mediaType); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestWithoutTesseractAScanHasNoText(t *testing.T) {
	only(t, "pdftotext", "pdftoppm")
	if got := readIn(t, "en", extracttest.OnePage(""), "application/pdf"); got != `no_text no_ocr jpeg 395x512 wwww of 1` {
		t.Error(got)
	}
}

// only makes some programs the only ones that are found.
func only(t *testing.T, programs ...string) {
	t.Helper()
	folder := t.TempDir()
	for _, one := range programs {
		path, err := exec.LookPath(one)
		if err == nil {
			err = os.Symlink(path, filepath.Join(folder, one))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", folder)
}

// TestTesseractRecognizesText uses the real program.
func TestTesseractRecognizesText(t *testing.T) {
	if _, err := exec.LookPath("tesseract"); err != nil {
		t.Fatal("tesseract-ocr is not installed: run make debian-test")
	}
	page := photo("Low water is at noon.", "High water is at six.")
	for mediaType, content := range map[string]string{"image/png": extracttest.PictureOf("png", page), "application/pdf": scan(page), "image/tiff": extracttest.PictureOf("tiff", page)} {
		if got := readIn(t, "en", content, mediaType); !strings.Contains(got, "[recognized 1]") || !strings.Contains(got, `Low water is at noon.\nHigh water is at six.`) {
			t.Errorf("%s: %s", mediaType, got)
		}
	}
	if got := readIn(t, "en", extracttest.PictureOf("png", extracttest.Quarters(1200, 800)), "image/png"); got != `none 1200x800 jpeg 512x341 rgbw` {
		t.Errorf("a picture without text: %s", got)
	}
}

func TestTheLanguageOfTheAccountChoosesTheData(t *testing.T) {
	installed := []string{"ara", "chi_sim", "chi_tra", "deu", "eng"}
	for language, want := range map[string]string{
		"en": "eng", "de": "deu+eng", "de-AT": "deu+eng", "ar": "ara+eng", "zh": "chi_sim+eng", "zh-TW": "chi_tra+eng", "zh-CN": "chi_sim+eng", "ja": "eng", "": "eng", "xx": "eng",
	} {
		if got := extract.DataFor(language, installed); got != want {
			t.Errorf("%q: %s", language, got)
		}
	}
	if got := extract.DataFor("ja", []string{"fra"}) + extract.DataFor("ja", nil); got != "fra" {
		t.Error(got)
	}
}

func TestAPictureInHEICIsDecodedByAnotherProgram(t *testing.T) {
	decoded := filepath.Join(t.TempDir(), "decoded.png")
	if err := os.WriteFile(decoded, []byte(extracttest.PictureOf("png", extracttest.Quarters(1200, 800))), 0o600); err != nil {
		t.Fatal(err)
	}
	for script, want := range map[string]string{
		`cat ` + decoded + ` > "$2"`:                          `none 1200x800 jpeg 512x341 rgbw`,
		`cat ` + decoded + ` > "${2%.png}-1.png"; exit 1`:     `none 1200x800 jpeg 512x341 rgbw`,
		`[ "$(cat $1)" = content ] && cat ` + decoded + `>&1`: `none 1200x800 jpeg 512x341 rgbw`,
		`exit 1`:      `failed damaged`,
		`echo x > $2`: `failed damaged`,
	} {
		replaceProgram(t, "heif-dec", script)
		for _, mediaType := range []string{"image/heic", "image/avif"} {
			if got := readIn(t, "en", "content", mediaType); strings.ReplaceAll(got, " [recognized 1]", "") != want {
				t.Errorf("%s: %s", script, got)
			}
		}
	}
	only(t)
	if got := readIn(t, "en", "content", "image/heic"); got != `failed no_reader` {
		t.Error(got)
	}
}

// TestHEICAndAVIFAreDecoded uses the real programs.
func TestHEICAndAVIFAreDecoded(t *testing.T) {
	encoder, err := exec.LookPath("heif-enc")
	if err != nil {
		t.Fatal("libheif-examples is not installed: run make debian-test")
	}
	folder := t.TempDir()
	source := filepath.Join(folder, "a.png")
	if err := os.WriteFile(source, []byte(extracttest.PictureOf("png", extracttest.Quarters(1200, 800))), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ mediaType, name string }{{"image/heic", "a.heic"}, {"image/avif", "a.avif"}} {
		file := filepath.Join(folder, c.name)
		arguments := []string{source, "-o", file}
		if c.mediaType == "image/avif" {
			arguments = append([]string{"-A"}, arguments...)
		}
		if out, err := exec.CommandContext(t.Context(), encoder, arguments...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %s", err, out)
		}
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if got := readIn(t, "en", string(content), c.mediaType); got != `none 1200x800 jpeg 512x341 rgbw` {
			t.Errorf("%s: %s", c.mediaType, got)
		}
	}
}
