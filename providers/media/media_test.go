package media_test

import (
	"archive/zip"
	"bytes"
	"strings"
	"testing"

	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/unicode"

	"turnstone/protocol"
	"turnstone/protocol/filetype"
	"turnstone/providers/media"
)

const (
	ole    = "\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1\x00\x00"
	docx   = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
	odt    = "application/vnd.oasis.opendocument.text"
	epub   = "application/epub+zip"
	unsaid = filetype.OctetStream
	png    = "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"
	jpeg   = "\xFF\xD8\xFF\xE0\x00\x10JFIF\x00"
	webp   = "RIFF\x24\x00\x00\x00WEBPVP8L"
	gif    = "GIF89a\x01\x00\x01\x00"
)

// archive returns an archive of entries with their methods.
func archive(t *testing.T, entries ...string) string {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, name := range entries {
		body := strings.Repeat("x", 40)
		if name == "mimetype" {
			body = epub
		}
		w, err := z.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Deflate})
		if err == nil {
			_, err = w.Write([]byte(body))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestATypeIsDetected(t *testing.T) {
	deflated, absent := archive(t, "mimetype", "META-INF/container.xml"), archive(t, "OEBPS/content.opf", "META-INF/container.xml")
	sjis, _ := japanese.ShiftJIS.NewEncoder().String("名前,住所")
	wide, _ := unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM).NewEncoder().String("Tides come\n")
	for _, c := range []struct{ head, name, declared, want string }{
		{archive(t, "[Content_Types].xml", "word/document.xml"), "a.docm", "application/vnd.ms-word.document.macroenabled.12", docx},
		{archive(t, "[Content_Types].xml", "word/document.xml"), "a.dotx", unsaid, docx},
		{deflated, "a.epub", epub, epub},
		{deflated, "a.epub", unsaid, epub},
		{absent, "a.epub", epub, epub},
		{absent, "a", epub, epub},
		{absent, "a.odt", odt, odt},
		{absent, "a.docx", unsaid, docx},
		{absent, "a.zip", unsaid, "application/zip"},
		{absent, "a.epub", "application/zip", epub},
		{absent, "a.pdf", "application/pdf", "mismatch"},
		{absent, "a.zip", "application/pdf", "mismatch"},

		{jpeg, "a.png", "image/png", "image/jpeg"},
		{png, "a.jpg", "image/jpg", "image/png"},
		{webp, "a.jpg", unsaid, "image/webp"},
		{gif, "a", "image/png", "image/gif"},
		{png, "a.pdf", "image/png", "mismatch"},
		{png, "a.png", "application/pdf", "mismatch"},
		{"text", "a.png", "image/png", "mismatch"},

		{"a,b", "a.csv", "application/vnd.ms-excel", "text/csv"},
		{"a,b", "a.csv", unsaid, "text/csv"},
		{"a,b", "a.csv", "text/csv", "text/csv"},
		{`{"a":1}`, "a.jsonld", "application/ld+json", "application/ld+json"},
		{"a: 1", "a.yml", "application/x-yaml", "application/yaml"},
		{"let a", "a.ts", "video/mp2t", "text/x-typescript"},
		{"let a", "a.ts", unsaid, "text/x-typescript"},
		{"0\nSECTION\n2\nHEADER\n", "a.dxf", unsaid, "text/plain"},
		{"0\r\nSECTION\r\n2\r\nHEADER\r\n", "a.dxf", "image/vnd.dxf", "text/plain"},
		{"%!PS-Adobe-3.0\n", "a.ps", "application/postscript", "text/plain"},
		{"A=1", ".env", unsaid, "text/plain"},
		{"# a", "C# notes.md", unsaid, "text/markdown"},
		{"x", "50% off & more.txt", unsaid, "text/plain"},
		{ole, "a.doc", "application/msword", "application/msword"},
		{ole, "a.xls", unsaid, "application/vnd.ms-excel"},
		{ole, "a", "application/vnd.ms-powerpoint", "application/vnd.ms-powerpoint"},
		{ole, "a.docx", docx, "mismatch"},
		{ole, "a", unsaid, "mismatch"},
		{"<html><table>", "a.xls", "application/vnd.ms-excel", "text/html"},
		{"a\tb\n", "a.xls", unsaid, "text/plain"},
		{"{\\rtf1 x}", "a.doc", "application/msword", "application/rtf"},
		{ole, "a.csv", "application/vnd.ms-excel", "mismatch"},
		{"{\\rtf1 x}", "a.rtf", "text/rtf", "application/rtf"},
		{"{\\rtf1 x}", "a.rtf", unsaid, "application/rtf"},
		{"From: a@b\r\nSubject: x\r\n\r\nx", "a.eml", "message/rfc822", "message/rfc822"},
		{"From: a@b\r\n\r\nx", "a.eml", unsaid, "message/rfc822"},
		{"From: a@b\r\n\r\nx", "a.eml", "text/plain", "message/rfc822"},
		{"MIME-Version: 1.0\r\n\r\nx", "a.mht", "application/x-mimearchive", "multipart/related"},
		{`{"cells": []}`, "a.ipynb", "application/json", "application/x-ipynb+json"},
		{`{"cells": []}`, "a.ipynb", unsaid, "application/x-ipynb+json"},
		{sjis, "a.csv", "text/csv", "text/csv"},
		{wide, "a.txt", "text/plain", "text/plain"},
		{"caf\xE9", "a.txt", unsaid, "text/plain"},
		{"x", "a.pdf", "text/plain", "mismatch"},
		{"x", "a.txt", "application/pdf", "mismatch"},
		{"\x7FELF\x02\x01\x01\x00", "a", unsaid, "mismatch"},
		{"\x00\x01\x02\x03\xFF", "a.txt", "text/plain", "mismatch"},
	} {
		got, mismatch := media.Detector{}.Detect([]byte(c.head), c.name, filetype.Canonical(c.declared))
		if mismatch != nil {
			got = "mismatch"
			if mismatch.Code != protocol.UploadContentMismatch && mismatch.Code != protocol.UploadEncrypted || mismatch.Detail == "" {
				t.Errorf("%q: %+v", c.name, mismatch)
			}
		}
		if got != c.want {
			t.Errorf("%q as %s named %s: %s, want %s", c.head[:min(len(c.head), 12)], c.declared, c.name, got, c.want)
		}
	}
}
