package transfer

import (
	"fmt"
	"strings"

	"turnstone/persistence/artifacts"
	"turnstone/protocol"
)

// The media types of the contents of artifacts, which no browser runs.
const (
	plainText = "text/plain; charset=utf-8"
	csvText   = "text/csv; charset=utf-8; header=absent"
)

// ArtifactInput is embedded by inputs of routes that send the content of an artifact.
type ArtifactInput struct {
	Format string `query:"format" enum:"csv" doc:"Of a table: csv for spreadsheets. Default: the content as it is stored."`
}

// Text returns a content in the format of the request, and its media type.
func (in *ArtifactInput) Text(kind protocol.ArtifactKind, content string) (text, media string, err error) {
	switch {
	case in.Format == "":
		return content, plainText, nil
	case kind != protocol.ArtifactTable:
		return "", "", protocol.Invalid("query.format", "is only for tables")
	}
	if text, err = artifacts.GuardedTable(content); err != nil {
		return "", "", fmt.Errorf("writing a table: %w", err)
	}
	return text, csvText, nil
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

// ArtifactExtension returns the extension of the file as which an artifact is downloaded.
func ArtifactExtension(kind protocol.ArtifactKind, language *string) string {
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
