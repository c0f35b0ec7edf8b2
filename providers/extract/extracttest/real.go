package extracttest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// real are files of the packages that this program is built with or that a computer may have, by package and path. want is a part of
// the summary, or of the text.
var real = []struct{ of, path, mediaType, want string }{
	{"golang.org/x/text", "encoding/testdata/rashomon-shift-jis.txt", "text/plain", "羅生門"},
	{"golang.org/x/text", "encoding/testdata/rashomon-euc-jp.txt", "text/plain", "羅生門"},
	{"golang.org/x/text", "encoding/testdata/rashomon-iso-2022-jp.txt", "text/plain", "羅生門"},
	{"golang.org/x/text", "encoding/testdata/rashomon-utf-8.txt", "text/plain", "羅生門"},
	{"golang.org/x/text", "encoding/testdata/sunzi-bingfa-simplified-gbk.txt", "text/plain", "孙子曰"},
	{"golang.org/x/text", "encoding/testdata/sunzi-bingfa-traditional-big5.txt", "text/plain", "孫子曰"},
	{"golang.org/x/text", "encoding/testdata/unsu-joh-eun-nal-euc-kr.txt", "text/plain", "운수"},
	{"golang.org/x/text", "encoding/testdata/candide-windows-1252.txt", "text/plain", "TROUVÉES"},
	{"golang.org/x/text", "encoding/testdata/candide-utf-16le.txt", "text/plain", "TROUVÉES"},
	{"golang.org/x/text", "encoding/testdata/candide-utf-8.txt", "text/plain", "TROUVÉES"},
	{"github.com/gogs/chardet", "testdata/big5.html", "text/html", "中時電子報"},
	{"github.com/gogs/chardet", "testdata/gb18030.html", "text/html", "搜索设置"},
	{"github.com/gogs/chardet", "testdata/euc_jp.html", "text/html", "楽天市場"},
	{"github.com/gogs/chardet", "testdata/euc_kr.html", "text/html", "메일"},
	{"github.com/gogs/chardet", "testdata/8859_1_de.html", "text/html", "Lösungen"},
	{"github.com/gogs/chardet", "testdata/8859_1_da.html", "text/html", "på"},
	{"golang.org/x/net", "html/charset/testdata/UTF-16BE-BOM.html", "text/html", "done"},
	{"golang.org/x/net", "html/charset/testdata/UTF-16LE-BOM.html", "text/html", "done"},
	{"golang.org/x/net", "html/charset/testdata/HTTP-charset.html", "text/html", "charset"},
	{"github.com/xuri/excelize/v2", "test/Book1.xlsx", xlsx, "done [no_values 5] of 2"},
	{"github.com/xuri/excelize/v2", "test/SharedStrings.xlsx", xlsx, "done"},
	{"github.com/xuri/excelize/v2", "test/MergeCell.xlsx", xlsx, "done"},
	{"github.com/xuri/excelize/v2", "test/CalcChain.xlsx", xlsx, "done"},
	{"github.com/xuri/excelize/v2", "test/encryptSHA512.xlsx", xlsx, "failed encrypted"},
	{"github.com/xuri/excelize/v2", "test/BadWorkbook.xlsx", xlsx, "failed"},
	{"github.com/gabriel-vasile/mimetype", "testdata/docx.docx", docx, "done"},
	{"github.com/gabriel-vasile/mimetype", "testdata/pptx.pptx", pptx, "failed damaged"},
	{"github.com/gabriel-vasile/mimetype", "testdata/xlsx.xlsx", xlsx, "done"},
	{"github.com/wneessen/go-mail", "testdata/RFC5322-A1-1.eml", eml, "Subject: Saying Hello"},
	{"github.com/wneessen/go-mail", "testdata/multipart-report.eml", eml, "done"},
	{"golang.org/x/image", "testdata/video-001.tiff", "image/tiff", "none 150x103 jpeg"},
	{"golang.org/x/image", "testdata/bw-packbits.tiff", "image/tiff", "none 153x55 jpeg"},
	{"golang.org/x/image", "testdata/yellow_rose-small.bmp", "image/bmp", "none 16x12 jpeg"},
	{"golang.org/x/image", "testdata/yellow_rose.lossy-with-alpha.webp", "image/webp", "none 400x301 png"},
	{"golang.org/x/image", "testdata/tux.lossless.webp", "image/webp", "none 386x395 png"},
	{"golang.org/x/image", "testdata/gopher-doc.8bpp.lossless.webp", "image/webp", "none"},
	{"Debian libtasn1-doc", "/usr/share/doc/libtasn1-doc/libtasn1.pdf", pdf, "done"},
	{"Debian shared-mime-info", "/usr/share/doc/shared-mime-info/shared-mime-info-spec.pdf", pdf, "done"},
	{"Debian shared-mime-info", "/usr/share/doc/shared-mime-info/shared-mime-info-spec.html/index.html", "text/html", "done"},
	{"Debian base-files", "/usr/share/common-licenses/GPL-3", "text/plain", "GNU GENERAL PUBLIC LICENSE"},
}

// RealRows are the real files that this computer has. Those of modules are where the tests of these modules are, if the modules
// are in the cache of Go.
func RealRows() ([]Row, error) {
	folders, err := moduleFolders()
	if err != nil {
		return nil, err
	}
	var rows []Row
	for _, c := range real {
		content, err := os.ReadFile(filepath.Join(folders[c.of], c.path))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading a file of %s: %w", c.of, err)
		}
		rows = append(rows, Row{filepath.Base(c.path), c.mediaType, string(content), c.want})
	}
	return rows, nil
}

func moduleFolders() (map[string]string, error) {
	list := []string{"list", "-m", "-f", "{{.Path}} {{.Dir}}"}
	for _, c := range real {
		if !filepath.IsAbs(c.path) && !slices.Contains(list, c.of) {
			list = append(list, c.of)
		}
	}
	out, err := exec.Command("go", list...).Output()
	if err != nil {
		return nil, fmt.Errorf("finding modules: %w", err)
	}
	folders := map[string]string{}
	for line := range strings.Lines(string(out)) {
		name, folder, _ := strings.Cut(strings.TrimSpace(line), " ")
		folders[name] = folder
	}
	return folders, nil
}
