package resource

import (
	"context"
	"fmt"
	"strings"

	"turnstone/http/markdown"
	"turnstone/persistence/artifacts"
	"turnstone/protocol"
)

// The media types of the contents of artifacts. They are downloads, so no browser runs them.
const (
	plainText = "text/plain; charset=utf-8"
	csvText   = "text/csv; charset=utf-8; header=absent"
	htmlText  = "text/html; charset=utf-8"
	docxFile  = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
)

// ArtifactFile is an artifact as a file.
type ArtifactFile struct {
	Content   []byte
	Media     string // its type
	Extension string
}

// FileOfArtifact returns the content of an artifact in a format: csv of a table, html or docx of a document; empty: as it is stored.
func FileOfArtifact(ctx context.Context, format string, kind protocol.ArtifactKind, language *string, title, content string) (file *ArtifactFile, err error) {
	switch {
	case format == "":
		return &ArtifactFile{[]byte(content), plainText, artifactExtension(kind, language)}, nil
	case format == "csv" && kind != protocol.ArtifactTable:
		return nil, protocol.Invalid("query.format", "can be csv only for tables")
	case format != "csv" && kind != protocol.ArtifactDocument:
		return nil, protocol.Invalid("query.format", "can be "+format+" only for documents")
	}
	switch format {
	case "csv":
		content, err = artifacts.GuardedTable(content)
		file = &ArtifactFile{[]byte(content), csvText, ".csv"}
	case "html":
		file = &ArtifactFile{Media: htmlText, Extension: ".html"}
		file.Content, err = markdown.HTML(ctx, title, content)
	default:
		file = &ArtifactFile{Media: docxFile, Extension: ".docx"}
		file.Content, err = markdown.Word(ctx, title, content)
	}
	if err != nil {
		return nil, fmt.Errorf("converting an artifact: %w", err)
	}
	return file, nil
}

// extensions are those of the files as which artifacts are downloaded.
var extensions = map[protocol.ArtifactKind]string{
	protocol.ArtifactDocument: ".md", protocol.ArtifactHTML: ".html", protocol.ArtifactSVG: ".svg", protocol.ArtifactTable: ".csv", protocol.ArtifactDiagram: ".mmd",
}

// codeExtensions are those of code, by its language.
var codeExtensions = map[string]string{
	"bash": ".sh", "c": ".c", "c++": ".cpp", "cpp": ".cpp", "css": ".css", "go": ".go", "html": ".html", "java": ".java", "javascript": ".js", "json": ".json",
	"kotlin": ".kt", "php": ".php", "python": ".py", "r": ".r", "ruby": ".rb", "rust": ".rs", "shell": ".sh", "sql": ".sql", "swift": ".swift", "toml": ".toml",
	"typescript": ".ts", "xml": ".xml", "yaml": ".yaml",
}

// artifactExtension returns the extension of the file as which an artifact is downloaded.
func artifactExtension(kind protocol.ArtifactKind, language *string) string {
	if extension := extensions[kind]; extension != "" {
		return extension
	}
	if language != nil {
		if extension := codeExtensions[strings.ToLower(*language)]; extension != "" {
			return extension
		}
	}
	return ".txt"
}
